"""The golden texts, by the names that results of benchmarks/texts_gpu.py carry. That script measures them."""

from __future__ import annotations

from functools import partial

from tessera.bench.cuda.declarations import kernel_text
from tessera.targets.cuda import golden


def text_of(name: str, element: str) -> str:
    return golden.compiled(name, element).ptx


for text in golden.names():
    for element in golden.ELEMENTS:
        kernel_text(f"{text} {element}")(partial(text_of, text, element))
