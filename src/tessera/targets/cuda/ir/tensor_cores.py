"""The dots that tensor cores have, by element types (`mma.sync` and `wgmma`), and the layouts their operands need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from tessera.dtypes import types as dt
from tessera.dtypes.types import DType
from tessera.targets.cuda.ir import layouts
from tessera.targets.cuda.ir.layouts import WARP, Layout


@dataclass(frozen=True)
class MmaInstruction:
    """One matrix instruction of a warp: its shape and types as PTX spells them, and how deep it is."""

    name: str
    depth: int
    splits: bool = False
    """Operands are cut into two parts first, and their products added: the tensor cores do not have all of their
    bits."""


_SIGNS = {dt.i8: "s8", dt.u8: "u8"}
_EIGHTS = {dt.f8e4m3: "e4m3", dt.f8e5m2: "e5m2"}


def _table() -> Iterator[tuple[tuple[DType, DType, DType], MmaInstruction]]:
    for dtype, total in ((dt.f16, dt.f32), (dt.bf16, dt.f32), (dt.f16, dt.f16)):
        spelled = f"m16n8k16.row.col.{total}.{dtype}.{dtype}.{total}"
        yield (dtype, dtype, total), MmaInstruction(spelled, 16)
    single = "m16n8k8.row.col.f32.tf32.tf32.f32"
    yield (dt.tf32, dt.tf32, dt.f32), MmaInstruction(single, 8)
    yield (dt.f32, dt.f32, dt.f32), MmaInstruction(single, 8, splits=True)
    yield (dt.f64, dt.f64, dt.f64), MmaInstruction("m8n8k4.row.col.f64.f64.f64.f64", 4)
    for left, right in product(_SIGNS, repeat=2):
        spelled = f"m16n8k32.row.col.s32.{_SIGNS[left]}.{_SIGNS[right]}.s32"
        for total in (dt.i32, dt.u32):
            yield (left, right, total), MmaInstruction(spelled, 32)
    for left, right in product(_EIGHTS, repeat=2):
        spelled = f"m16n8k32.row.col.f32.{_EIGHTS[left]}.{_EIGHTS[right]}.f32"
        yield (left, right, dt.f32), MmaInstruction(spelled, 32)


INSTRUCTIONS: Mapping[tuple[DType, DType, DType], MmaInstruction] = dict(_table())
"""By the element types of both operands and of the accumulator. 8-bit floats need sm_89."""


def _wgmma_table() -> Iterator[tuple[tuple[DType, DType, DType], str]]:
    for dtype in (dt.f16, dt.bf16, dt.tf32):
        yield (dtype, dtype, dt.f32), f"f32.{dtype}.{dtype}"
    for left, right in product(_SIGNS, repeat=2):
        for total in (dt.i32, dt.u32):
            yield (left, right, total), f"s32.{_SIGNS[left]}.{_SIGNS[right]}"
    for left, right in product(_EIGHTS, repeat=2):
        yield (left, right, dt.f32), f"f32.{_EIGHTS[left]}.{_EIGHTS[right]}"


WGMMA_TYPES: Mapping[tuple[DType, DType, DType], str] = dict(_wgmma_table())
"""Dots of warp groups on sm_90a (wgmma): the types as PTX spells them. A step is as deep as `depth_step` says."""


def transposes_in_memory(dtype: DType) -> bool:
    """Whether warpgroups multiply operands of a type whichever way they lie in shared memory, and not only those
    whose depth lies side by side."""
    return dtype.storage.itemsize == 2


def operand_bits(dtype: DType) -> int:
    """The width of elements as layouts of operands count them: 64-bit ones lie as 32-bit ones do."""
    return min(32, 8 * dtype.storage.itemsize)


def depth_step(dtype: DType) -> int:
    """The least depth that layouts of operands hold as a whole: a dot is cut at multiples of it."""
    return 256 // operand_bits(dtype)


@dataclass(frozen=True)
class Grid:
    """The grid of a block's warps over the accumulator of a dot."""

    down: int
    across: int


def grid_of(total: Layout, rows: int, columns: int) -> Grid | None:
    """The warps of an accumulator's layout; None if it is not one."""
    warps = total.thread_count // WARP
    plain = Layout.of(total.threads, total.registers)
    for down in range(1, warps + 1):
        if warps % down == 0 and layouts.accumulator(rows, columns, (down, warps // down)) == plain:
            return Grid(down, warps // down)
    return None


def operand_layouts(
    grid: Grid, rows: int, depth: int, columns: int, left: DType, right: DType
) -> tuple[Layout, Layout]:
    """The layouts of both operands of a dot."""
    warps = grid.down, grid.across
    return (
        layouts.left_operand(rows, depth, warps, operand_bits(left)),
        layouts.right_operand(depth, columns, warps, operand_bits(right)),
    )


def same(first: Layout, second: Layout) -> bool:
    """Whether two layouts are one, however they are spelled."""
    return Layout.of(first.threads, first.registers) == Layout.of(second.threads, second.registers)
