"""Blocks for kernels without a schedule, by the model of multiprocessors; see docs/hopper.md, "Which block"."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from tessera.targets.cuda.hopper.modelled_work import work_of
from tessera.targets.cuda.lower.multiprocessor_model import (
    AXES,
    BlockShape,
    Traced,
    best_by_columns,
    best_by_consumers,
    divides_columns,
    instance_clocks,
)

if TYPE_CHECKING:
    from tessera.ir.tile import dialect as tile


def modelled_blocks(
    function: tile.FuncOp, probe: tuple[int, int, int], row_aligned: Collection[int], fixed: tuple[int, ...]
) -> list[tuple[tuple[int, ...], float, bool]]:
    """The best blocks of each number of rows, with the clocks of an instance: first the one that is best for many.

    Rows that one block leaves many of to the last round of instances, another one may fill it with.
    """
    traced = work_of(function, dict(zip(probe, AXES, strict=True)), row_aligned)
    if traced is None or (fixed and "k" not in traced.axes):
        return []
    found, narrower = list(best_by_consumers(traced, fixed).values()), list[BlockShape]()
    if divides_columns(traced):
        # How many columns there are is not known: with rows alone, program instances cannot be counted. A call may.
        found = found[:1]
        narrower = [block for block in best_by_columns(traced, fixed) if block not in found]
    made = [(block, False) for block in found] + [(block, True) for block in narrower]
    return [(_used(traced, block), instance_clocks(traced, block), counted) for block, counted in made]


def _used(traced: Traced, block: BlockShape) -> tuple[int, ...]:
    """A block without the axes that a kernel does not look at."""
    axes = traced.axes
    return block if "k" in axes else block[:2] if "n" in axes else block[:1]
