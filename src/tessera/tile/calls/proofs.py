"""Proofs about a kernel's numbers by interval arithmetic, and the premises they rest on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from tessera.dtypes.types import DType
from tessera.errors import GuardError
from tessera.interpreters.core.scalars import as_array
from tessera.interpreters.sanitizers.sentinels import ARITHMETIC
from tessera.interpreters.sanitizers.stored_values import limits_in, outside
from tessera.interpreters.sanitizers.underflow import decaying, may_underflow
from tessera.ir.common.elements import dtype_of
from tessera.ir.common.intervals import Interval, hull
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import ViewType, tile_dtype
from tessera.runtime.tensor.tensor import Tensor
from tessera.tile.calls.instance import Instance
from tessera.tile.calls.numerics import Claim, Limits, Numerics, Report, limits_text
from tessera.transforms.facts.value_bounds import read, value_bounds, written

Bounds = Mapping[SSAValue, Interval]


def prove(promises: Numerics, instance: Instance) -> Report:
    """Each promise with its proof, if intervals have one for this program."""
    program = _program(instance)
    premises = {
        argument: Interval(*limits_in(dtype, limits))
        for argument, dtype, limits in _bounded_inputs(promises, instance, program)
    }
    bounds = value_bounds(program, premises)
    return Report(tuple(_CLAIMS[check](program, bounds, value) for check, value in promises.wanted.items()))


def check_inputs(promises: Numerics, instance: Instance, values: Sequence[Any]) -> None:
    """Refuses numbers that come in out of their bounds."""
    program = _program(instance)
    for argument, dtype, limits in _bounded_inputs(promises, instance, program):
        path, value = instance.paths[argument], values[argument]
        array = value.numpy() if isinstance(value, Tensor) else as_array(value, dtype)
        wrong = outside(array, dtype, limits)
        if wrong.any():
            index = tuple(int(at) for at in np.argwhere(wrong)[0])
            where = f"holds {array[index]!s} at {list(index)}" if index else f"is {array[index]!s}"
            raise GuardError(
                f"argument {path} {where}, outside of its bounds {limits_text(limits)}",
                hint="scale or clamp it before the call, or widen the bounds",
            )


def inputs_may_change(instance: Instance, values: Sequence[Any]) -> bool:
    """Whether the program may write an array that it also reads under another name; then bounds on it prove nothing."""
    program = _program(instance)
    arrays: dict[SSAValue, Any] = {
        argument: value.numpy()
        for argument, value in zip(program.arguments, values, strict=False)
        if isinstance(value, Tensor)
    }
    changed, used = written(program) & arrays.keys(), read(program) & arrays.keys()
    return any(np.may_share_memory(arrays[a], arrays[b]) for a in changed for b in used if a is not b)


def _program(instance: Instance) -> tile.FuncOp:
    function = instance.module.body.block.first_op
    assert isinstance(function, tile.FuncOp)
    return function


def _bounded_inputs(
    promises: Numerics, instance: Instance, program: tile.FuncOp
) -> Sequence[tuple[int, DType, Limits]]:
    """The arguments with limits: index, element type, limits. Arrays that are only written hold nothing yet."""
    used, found = read(program), list[tuple[int, DType, Limits]]()
    for index, (path, argument) in enumerate(zip(instance.paths, program.arguments, strict=False)):
        dtype = argument.type.dtype if isinstance(argument.type, ViewType) else dtype_of(argument.type)
        limits = promises.limits_of(path, is_float=dtype.is_float)
        comes_in = argument in used and index not in program.blank if isinstance(argument.type, ViewType) else True
        if limits is not None and comes_in:
            found.append((index, dtype, limits))
    return found


def _bounded(program: tile.FuncOp, bounds: Bounds, limits: Limits) -> Claim:
    words = f"what is stored lies in {limits_text(limits)}"
    stored: list[Interval] = []
    for op in program.body.walk():
        if not isinstance(op, tile.Writer) or not tile_dtype(op.value).is_float:
            continue
        low, high = limits_in(tile_dtype(op.value), limits)
        found = bounds[op.value]
        # What an atomic leaves in memory depends on what is there.
        if isinstance(op, tile.Atomic) or found.may_nan or found.lo < low or found.hi > high:
            return Claim("bounded", words, None)
        stored.append(found)
    if not stored:
        return Claim("bounded", words, "no float is stored")
    whole = hull(stored)
    return Claim("bounded", words, f"it lies in {limits_text((whole.lo, whole.hi))}")


def _nonfinite(program: tile.FuncOp, bounds: Bounds, _: object) -> Claim:
    made = [bounds[result] for op in program.body.walk() if type(op) in ARITHMETIC for result in op.results]
    finite = not any(found.may_nan or found.may_be_infinite for found in made)
    return Claim("nonfinite", "no NaN and no infinity is made", "every value is bounded" if finite else None)


def _underflow(program: tile.FuncOp, bounds: Bounds, _: object) -> Claim:
    decays = decaying(program)
    safe = not any(0 in bounds[op.results[0]] for op in program.body.walk() if may_underflow(op, decays))
    return Claim("underflow", "nothing underflows", "no product, quotient or cast reaches 0" if safe else None)


def _overflow(program: tile.FuncOp, bounds: Bounds, _: object) -> Claim:
    # Positions depend on the grid, and that on the sizes of a call.
    return Claim("overflow", "no signed integer wraps around", None)


_CLAIMS: Mapping[str, Callable[[tile.FuncOp, Bounds, Any], Claim]] = MappingProxyType(
    {"bounded": _bounded, "nonfinite": _nonfinite, "underflow": _underflow, "overflow": _overflow}
)
