"""Calls of tile functions from graphs: matching sizes, inferring results, inheriting effects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.traits import EffectInstance
from xdsl.utils.exceptions import VerifyException

from tessera.ir.common.effects import MEMORY, effects_within, observable
from tessera.ir.graph.effects import look_up
from tessera.ir.graph.types import GraphTensorType
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import ViewType
from tessera.shapes.expr import Dim, Shape, Size, dim, format_shape, size


def substitute(shape: Sequence[Size], values: Mapping[str, Size]) -> Shape:
    """The sizes with symbols replaced."""
    return tuple(size(dim(one).substitute(values)) for one in shape)


def match_symbols(kernel: tile.FuncOp, types: Sequence[Attribute]) -> dict[str, Size]:
    """The values of the symbols of a kernel's signature when it is called with `types`.

    Plain symbols are bound where they first occur; every other size must then agree.
    """
    values: dict[str, Size] = {}
    pairs: list[tuple[int, Shape, Shape]] = []
    for position, (formal, type_) in enumerate(zip(kernel.shapes, types, strict=False)):
        if isinstance(type_, GraphTensorType):
            pairs.append((position, formal.data, type_.shape))
    for _, formal, actual in pairs:
        for expected, found in zip(formal, actual, strict=False):
            text = str(expected)
            if isinstance(expected, Dim) and text.isidentifier():
                values.setdefault(text, found)
    for position, formal, actual in pairs:
        if (wanted := substitute(formal, values)) != actual:
            raise VerifyException(
                f"argument {position} of @{kernel.sym_name.data}: expected {format_shape(formal)}"
                f" = {format_shape(wanted)}, got {format_shape(actual)}"
            )
    return values


def result_types(kernel: tile.FuncOp, arguments: Sequence[Attribute]) -> list[GraphTensorType]:
    """The tensors a call gives, from its arguments and the kernel's signature."""
    values = match_symbols(kernel, arguments)
    outputs = list(zip(kernel.shapes, kernel.function_type.inputs, strict=True))[kernel.input_count :]
    return [
        GraphTensorType.of(substitute(formal.data, values), view.dtype)
        for formal, view in outputs
        if isinstance(view, ViewType)
    ]


def verify_kernel_call(
    op: Operation, callee: SymbolRefAttr, arguments: Sequence[SSAValue], results: Sequence[SSAValue]
) -> tile.FuncOp:
    """Inputs, then outputs, must be what the tile function takes: tensors as views, scalars as they are."""
    kernel = look_up(op, callee, tile.FuncOp)
    given = [value.type for value in (*arguments, *results)]
    taken = list(kernel.function_type.inputs)
    if len(given) != len(taken) or len(results) != kernel.outputs.value.data:
        raise VerifyException(
            f"@{kernel.sym_name.data} takes {kernel.input_count} inputs and gives {kernel.outputs.value.data} "
            f"outputs; here are {len(arguments)} and {len(results)}"
        )
    for position, (type_, wanted) in enumerate(zip(given, taken, strict=True)):
        seen = type_
        if isinstance(type_, GraphTensorType):
            seen = ViewType(len(type_.shape), type_.element)
        if seen != wanted:
            raise VerifyException(f"argument {position} of @{kernel.sym_name.data}: expected {wanted}, got {type_}")
    match_symbols(kernel, given)
    inputs = kernel.arguments[: kernel.input_count]
    for effect in effects_within(_leaves(kernel)) or ():
        if observable(effect) and any(effect.value is argument for argument in inputs):
            raise VerifyException(
                f"@{kernel.sym_name.data} writes to an input; in a graph, inputs are values: make it an output"
            )
    return kernel


def kernel_effects(op: Operation, callee: SymbolRefAttr) -> AbstractSet[EffectInstance]:
    """The effects of a call of a tile function; its writes to its own memory do not count."""
    kernel = look_up(op, callee, tile.FuncOp)
    return {effect for effect in effects_within(_leaves(kernel)) or () if effect.resource != MEMORY}


def _leaves(kernel: tile.FuncOp) -> list[Operation]:
    return [op for op in kernel.body.walk() if not op.regions]
