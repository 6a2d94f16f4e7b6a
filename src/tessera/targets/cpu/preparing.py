"""What happens to a tile function before nests are looked for: checks, and rewrites that make all of it plain."""

from __future__ import annotations

from math import frexp, isfinite

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from tessera.dialects import tile
from tessera.dialects.locations import span_of
from tessera.dialects.tile_types import tile_type
from tessera.errors import CompileError
from tessera.targets.cpu.thin_products import spread_thin_products
from tessera.targets.cpu.wide_sums import widen_sums
from tessera.transforms.masks import constant_of
from tessera.transforms.scaled_maxima import scale_maxima


def prepare(function: tile.FuncOp) -> frozenset[SSAValue]:
    """Rewrites a function; gives the multiples that may be rounded together with a sum."""
    _check(function)
    multiples = _single_multiples(function)
    widen_sums(function)
    spread_thin_products(function)
    scale_maxima(function)
    return multiples


def _single_multiples(function: tile.FuncOp) -> frozenset[SSAValue]:
    """Multiples that one op alone uses, or that need no rounding: a sum of them may be rounded once.

    One that others use too must be the same for all: x·a − max(x·a) is never above 0.
    """
    return frozenset(
        op.result
        for op in function.body.walk()
        if isinstance(op, tile.EwOp)
        and op.fn.data == "mul"
        and (_has_one_user(op.result) or any(_is_power_of_two(operand) for operand in op.operands_))
    )


def _has_one_user(value: SSAValue) -> bool:
    """Whether one op uses a value. What a mask chooses counts as the value itself: the mask may be left out."""
    users = [use.operation for use in value.uses]
    if len(users) != 1:
        return False
    (user,) = users
    chooses = isinstance(user, tile.EwOp) and user.fn.data == "select"
    return _has_one_user(user.results[0]) if chooses else True


def _is_power_of_two(value: SSAValue) -> bool:
    number = constant_of(value)
    return number is not None and isfinite(number) and abs(frexp(number)[0]) == 0.5


def _check(function: tile.FuncOp) -> None:
    """Refuses what has no machine code, before anything is written."""
    for op in function.body.walk():
        for value in (*op.results, *op.operands):
            if isinstance(value.type, TensorType) and len(tile_type(value).get_shape()) > 2:
                raise CompileError(
                    f"{op.name} works on {tile_type(value)}: tiles on CPUs have at most two axes",
                    span=span_of(op.location),
                    hint="fold two axes into one, or run it in the interpreter: TESSERA_INTERPRET=1",
                )
        if isinstance(op, tile.DebugPrintOp):
            raise CompileError(
                "a kernel that prints or stops runs in the interpreter only",
                span=span_of(op.location),
                hint="TESSERA_INTERPRET=1 sends every kernel there",
            )
