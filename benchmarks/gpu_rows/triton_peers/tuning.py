"""How peers in Triton are tuned: by medians of runs that are long enough to tell configurations apart, and not longer.

Kernels of sorts take many seconds to compile. Processes that are told a share each, as `TRITON_PEERS_SHARE=3/12`, fill
Triton's cache side by side; one that is told nothing then finds all configurations there, and tunes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import triton
from triton.testing import do_bench

WARM_MS, TIMED_MS = 5, 25


def share(configs: Sequence[Any]) -> list[Any]:
    """The configurations of this process: all of them, unless it is told otherwise."""
    index, count = map(int, os.environ.get("TRITON_PEERS_SHARE", "0/1").split("/"))
    return list(configs[index::count]) or list(configs[:1])


def tuned(configs: Sequence[Any], **options: Any) -> Callable[[Any], Any]:
    """Tunes a kernel over all configurations, for each set of the arguments that are its key."""
    return triton.autotune(share(configs), do_bench=partial(do_bench, warmup=WARM_MS, rep=TIMED_MS), **options)
