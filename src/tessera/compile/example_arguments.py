"""Arguments made of annotations, for functions that are compiled without a call at hand."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import Parameter
from typing import Any

from tessera.compile.sources import Compilable, name_of
from tessera.dtypes.types import f32
from tessera.errors import CompileError
from tessera.lang.creation import zeros
from tessera.shapes.annotations import TensorType
from tessera.shapes.expr import dim
from tessera.tile.calls.function import Kernel

DEFAULT_SIZE = 64


def example_arguments(source: Compilable, sizes: Mapping[str, int], hint: str = "give the arguments") -> list[Any]:
    """Zeros of the annotated types; `sizes` are those of their symbols, 64 where they are not given."""
    signature = source.signature if isinstance(source, Kernel) else source.parameters.signature
    annotated = (source if isinstance(source, Kernel) else source.parameters).annotations.parameters
    made: list[Any] = []
    for name, parameter in signature.parameters.items():
        if parameter.kind is Parameter.KEYWORD_ONLY or parameter.default is not Parameter.empty:
            continue
        found = annotated.get(name)
        if not isinstance(found, TensorType):
            raise CompileError(
                f"argument {name} of {name_of(source)} has no annotation to make an array from", hint=hint
            )
        symbols = {str(symbol) for size in found.dims for symbol in dim(size).symbols}
        chosen = {symbol: sizes.get(symbol, DEFAULT_SIZE) for symbol in symbols}
        made.append(zeros(tuple(dim(size).evaluate(chosen) for size in found.dims), found.dtype or f32))
    return made
