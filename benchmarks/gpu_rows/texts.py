"""The golden texts, by the names that results of benchmarks/texts_gpu.py carry. That script measures them."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from tessera.bench.cuda.declarations import kernel_text

sys.path.append(str(Path(__file__).parents[2] / "tests"))
import golden_kernels as golden


def text_of(name: str, element: str) -> str:
    return golden.compiled(name, element).ptx


for text in golden.names():
    for element in golden.ELEMENTS:
        kernel_text(f"{text} {element}")(partial(text_of, text, element))
