"""Checks of single ops: what a declaration says is remembered by kinds, and what depends on the context never is."""

from __future__ import annotations

import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, f32, i32, i64
from xdsl.ir import Block, Region
from xdsl.utils.exceptions import VerifyException

from tessera.errors import CompileError
from tessera.ir import text
from tessera.ir.common.checking import check
from tessera.ir.tile import dialect as tile


def sums() -> tuple[arith.ConstantOp, arith.ConstantOp, arith.AddiOp]:
    first, second = (arith.ConstantOp(IntegerAttr(number, i32)) for number in (1, 2))
    return first, second, arith.AddiOp(first, second)


def test_an_op_of_a_kind_that_was_good_is_refused_where_it_is_another_kind() -> None:
    first, _, good = sums()
    check(good)
    wide = arith.ConstantOp(IntegerAttr(3, i64))
    mixed = arith.AddiOp.build(operands=[first, wide], result_types=[i32])
    floats = arith.AddiOp.build(operands=[first, first], result_types=[f32])
    for wrong in (mixed, floats):
        with pytest.raises(VerifyException):
            check(wrong)
        with pytest.raises(VerifyException):  # it was not remembered as good
            check(wrong)
    check(good)
    good.properties["something"] = IntegerAttr(1, i32)
    with pytest.raises(VerifyException, match="something"):
        check(good)


def test_where_an_op_stands_is_looked_at_every_time() -> None:
    *numbers, sum_ = sums()
    check(sum_)
    function = tile.FuncOp("f", [], 0, [], [1])
    block = function.body.block
    for op in (*numbers, sum_):
        block.add_op(op)
    with pytest.raises(CompileError, match="terminat"):
        text.verify(ModuleOp([function]))
    block.add_op(tile.ReturnOp())
    text.verify(ModuleOp([function.clone()]))


def test_values_from_outside_are_seen_in_kinds_that_were_good() -> None:
    def module(outside: bool) -> ModuleOp:
        first, second, sum_ = sums()
        function = tile.FuncOp("f", [], 0, [], [1])
        inside = [sum_, tile.ReturnOp()] if outside else [first, second, sum_, tile.ReturnOp()]
        function.body.block.add_ops(inside)
        return ModuleOp(Region(Block([first, second, function] if outside else [function])))

    text.verify(module(outside=False))
    with pytest.raises(CompileError, match="IsolatedFromAbove"):
        text.verify(module(outside=True))
