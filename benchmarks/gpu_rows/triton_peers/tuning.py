"""How peers in Triton are tuned: by medians of runs that are long enough to tell configurations apart, and not longer."""

from __future__ import annotations

from functools import partial

import triton
from triton.testing import do_bench

WARM_MS, TIMED_MS = 5, 25

tuned = partial(triton.autotune, do_bench=partial(do_bench, warmup=WARM_MS, rep=TIMED_MS))
