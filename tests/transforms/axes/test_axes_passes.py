"""Passes over tiles of many axes: kernels mean the same before and after each of them, and have fewer axes behind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from many_axes import CASES, FOUR, SHAPE, changed, changed_in_place, heads, products
from rewritten_programs import Array, run
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp, TensorType

from tessera import tile as language
from tessera.interpreters.core.engine import symbol_in
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_type
from tessera.targets import text
from tessera.transforms.axes.expand_scans import expand_scans
from tessera.transforms.axes.expand_sorts import expand_sorts
from tessera.transforms.axes.fold_leading_axes import fold_leading_axes
from tessera.transforms.axes.loop_leading_axes import loop_leading_axes
from tessera.transforms.axes.parts import is_batched
from tessera.transforms.axes.split_batched_dots import split_batched_dots, split_carried_dots

EVERY = {**CASES, **FOUR}
Rewrite = Callable[[tile.FuncOp], None]


def legal(function: tile.FuncOp) -> None:
    """As CPUs have it."""
    expanding = expand_scans, expand_sorts
    for one in (*expanding, split_carried_dots, loop_leading_axes, split_batched_dots, fold_leading_axes):
        one(function)


PASSES: Mapping[str, Rewrite] = {
    "split-carried-dots": split_carried_dots,
    "loop-leading-axes": loop_leading_axes,
    "split-batched-dots": split_batched_dots,
    "all": legal,
}


def most_axes(function: tile.FuncOp) -> int:
    """The axes of the tile with the most of them."""
    values = [value for op in function.walk() for value in (*op.operands, *op.results)]
    return max((tile_type(one).get_num_dims() for one in values if isinstance(one.type, TensorType)), default=0)


def rewritten(kernel_: Any, rewrite: Rewrite, arguments: list[Any], **static: Any) -> tuple[ModuleOp, tile.FuncOp]:
    """A kernel after a pass, which changes no bit of what it gives."""
    made = kernel_.lower(*arguments, **static)
    module: ModuleOp = made.module.clone()
    function = symbol_in(module, made.name, tile.FuncOp)
    function.properties["sym_name"] = type(function.sym_name)("k")
    before = module.clone()
    rewrite(function)
    text.verify(module)
    for one, other in zip(run(module, arguments), run(before, arguments), strict=True):
        np.testing.assert_array_equal(one, other)
    return module, function


def whole(shape: tuple[int, ...], seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(np.float32)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("each", PASSES)
def test_a_kernel_means_the_same(each: str, name: str) -> None:
    how, reference = EVERY[name]
    x = whole((3, 8, 13))
    out = np.full(np.asarray(reference(np.ones(SHAPE, np.float32))).shape, 77, np.float32)
    static = {"shape": SHAPE, "how": how, "pad": -1.0}
    _, function = rewritten(changed[1], PASSES[each], [x, out], **static)
    if each == "all":
        assert most_axes(function) <= 2
    if each in ("all", "split-batched-dots"):
        assert not any(map(is_batched, function.walk()))


@given(data=st.data())
@settings(max_examples=12)
def test_so_does_one_that_is_only_folded(data: st.DataObject) -> None:
    without = [
        name for name in EVERY if "product" not in name and "operand" not in name and not name.startswith("one ")
    ]
    how, reference = EVERY[data.draw(st.sampled_from(without))]
    x = whole(tuple(data.draw(st.integers(0, size + 1)) for size in SHAPE))
    out = np.full(np.asarray(reference(np.ones(SHAPE, np.float32))).shape, 77, np.float32)
    static = {"shape": SHAPE, "how": how, "pad": float(data.draw(st.integers(-1, 1)))}
    _, function = rewritten(changed[1], fold_leading_axes, [x, out], **static)
    assert most_axes(function) <= 2


@pytest.mark.parametrize("each", PASSES)
@pytest.mark.parametrize("name", ["elementwise", "turned 102", "back", "running 0", "products"])
def test_memory_is_read_before_it_is_written(name: str, each: str) -> None:
    shape = (8, 8, 8)
    for to in (0, 1):
        rewritten(changed_in_place[1], PASSES[each], [whole((9, 8, 8))], shape=shape, how=CASES[name][0], to=to)


@pytest.mark.parametrize("each", PASSES)
def test_loops_carry_parts(each: str) -> None:
    x, w, out = whole((3, 5, 20)), whole((3, 20, 7), 1), np.zeros((3, 5, 7), np.float32)
    _, function = rewritten(products[1], PASSES[each], [x, w, out], batch=4, m=6, k=8, n=7)
    (loop,) = [op for op in function.walk() if isinstance(op, scf.ForOp) and op.results] or [None]
    assert loop is not None
    assert len(loop.results) == (1 if each == "loop-leading-axes" else 4)
    q, k, v = (whole(shape, at) for at, shape in enumerate(((2, 5, 4), (2, 11, 4), (2, 11, 4))))
    made = heads[1].lower(q, k, v, np.zeros_like(q), h=2, m=8, n=8, d=4)
    carried = symbol_in(made.module.clone(), made.name, tile.FuncOp)
    PASSES[each](carried)
    (loop,) = [op for op in carried.walk() if isinstance(op, scf.ForOp) and op.results]
    # The sum, the maxima and the sums of weights.
    assert len(loop.results) == (3 if each == "loop-leading-axes" else 6)
    # Nothing is joined that was not asked for as a whole.
    assert each == "loop-leading-axes" or most_axes(carried) == 2


def test_what_has_two_axes_stays_as_it_is() -> None:
    x, out = whole((8, 8)), np.zeros((8, 8), np.float32)
    made = changed[1].lower(x, out, shape=(8, 8), how=squared_powers)
    before = text.write(made.module)
    for rewrite in PASSES.values():
        rewrite(symbol_in(made.module, made.name, tile.FuncOp))
        assert text.write(made.module) == before


def squared_powers(v: Any) -> Any:
    return language.exp(language.dot(v, language.transpose(v)))


def test_stores_of_as_many_parts_are_done_together() -> None:
    source = """
        tile.func @k(%x: !tile.view<3, f32, global>, %y: !tile.view<3, f32, global>, %z: !tile.view<3, f32, global>)
            outputs 0 shapes [[2, 4, 8], [2, 4, 8], [2, 4, 8]] grid [1] {
          %zero = arith.constant 0 : index
          %a = tile.load %x[%zero, %zero, %zero] : !tile.view<3, f32, global> -> tensor<2x4x8xf32>
          %b = tile.ew<exp> %a : tensor<2x4x8xf32> -> tensor<2x4x8xf32>
          tile.store %a, %y[%zero, %zero, %zero] : tensor<2x4x8xf32>, !tile.view<3, f32, global>
          tile.store %b, %OUT[%zero, %zero, %zero] : tensor<2x4x8xf32>, !tile.view<3, f32, global>
          tile.return
        }
    """
    for out, loops in (("z", 1), ("y", 2)):
        module = text.read(source.replace("%OUT", f"%{out}"))
        function = symbol_in(module, "k", tile.FuncOp)
        loop_leading_axes(function)
        assert sum(isinstance(op, scf.ForOp) for op in function.walk()) == loops
