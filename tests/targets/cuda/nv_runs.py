"""Runs of one tile program at both levels: by the tile interpreter, and lowered by the nv interpreter.

The nv interpreter takes tiles as whole arrays. Whether layouts fit together is checked apart from it: a thread must
hold what it needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from cpu_runs import Array, at_tile_level, copies
from gpu_options import gpu
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Operation, SSAValue

from tessera.interpreters.core.engine import symbol_in
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_type
from tessera.targets.cuda.compile import lower_kernel
from tessera.targets.cuda.interpreter.nv import run_nv_kernel
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.ir.layouts import Layout
from tessera.targets.cuda.ir.types import layout_of
from tessera.targets.cuda.lower.budget import partial_sums

__all__ = ["Array", "at_nv_level", "at_tile_level", "check_layouts", "lowered"]


def lowered(module: ModuleOp, name: str = "k", **options: Any) -> ModuleOp:
    """A copy of a module at the nv level, with layouts that fit together."""
    made = lower_kernel(module, name, gpu(**options)).module
    check_layouts(symbol_in(made, name, nv.FuncOp))
    return made


def at_nv_level(module: ModuleOp, name: str, arguments: Sequence[Any], seed: int | None = None) -> list[Array]:
    """The arrays after a run of a lowered module."""
    given = copies(arguments)
    run_nv_kernel(module, name, given, seed=seed)
    return [value for value in given if isinstance(value, np.ndarray)]


# Layouts


def coordinates(layout: Layout, rank: int, threads: int) -> Array:
    """Where the element of each register of each thread lies: threads by registers by axes."""
    found = np.zeros((threads, layout.count, rank), np.int64)
    for axis in range(rank):
        bases = [layout.base(thread, axis) for thread in range(layout.thread_count)]
        found[:, :, axis] = np.resize(bases, threads)[:, None] + np.asarray(layout.offsets(axis))
    return found


def held(layout: Layout, shape: Sequence[int], threads: int) -> Array:
    """Whether a thread holds an element: threads by the tile's shape."""
    found = np.zeros((threads, *shape), np.bool_)
    places = coordinates(layout, len(shape), threads)
    inside = (places < np.asarray(shape, np.int64)).all(-1)
    number = np.broadcast_to(np.arange(threads)[:, None], inside.shape)
    found[(number[inside], *places[inside].T)] = True
    return found


def check_layouts(function: nv.FuncOp) -> None:
    """Every element of a tile is held by somebody, and every thread holds what its part of a result is made of."""
    threads, known = function.thread_count, dict[tuple[Layout, tuple[int, ...]], Array]()

    def of(value: SSAValue) -> Array:
        key = layout_of(value), tile_type(value).get_shape()
        if key not in known:
            known[key] = held(*key, threads)
        return known[key]

    for op in function.body.walk():
        tiles = [value for value in op.results if isinstance(value.type, TensorType)]
        for value in tiles:
            assert of(value).any(0).all(), f"nobody holds all of {value.type}"
        if tiles and (need := _needed(op, of(tiles[0]))) is not None:
            (operand, needed) = need
            assert not (needed & ~of(operand)).any(), f"{op.name}: {operand.type} for {tiles[0].type}"
        if isinstance(op, tile.EwOp):
            assert {layout_of(operand) for operand in op.operands_} == {layout_of(op.result)}, f"{op}"


def _needed(op: Operation, result: Array) -> tuple[SSAValue, Array] | None:
    """The operand of an op that moves elements, and which of them each thread needs for its part of the result."""
    match op:
        case tile.ExpandOp():
            return op.operand, result[(slice(None),) * (1 + op.axis.value.data) + (0,)]
        case tile.BroadcastOp():
            shape = tile_type(op.operand).get_shape()
            axes = tuple(1 + axis for axis, size in enumerate(shape) if size == 1)
            return op.operand, np.asarray(result.any(axes, keepdims=True))
        case tile.TransOp():
            inverse = np.argsort(np.asarray([0, *(1 + axis for axis in op.permutation.iter_values())]))
            return op.operand, np.transpose(result, inverse)
        case tile.ReduceOp():
            # Threads meet along the axis; what they have in common otherwise, they must have. Where they meet in
            # shared memory, all of it is there for everybody.
            axis = op.axis.value.data
            if partial_sums(layout_of(op.operand), axis):
                return None
            folded = held(layout_of(op.operand).without(axis), result.shape[1:], len(result))
            assert not (result & ~folded).any(), f"{op.name}: {op.operand.type} for {op.result.type}"
            return None
        case _:
            return None
