"""A program at the nv level for each type that warpgroups of sm_90a multiply: one product, written by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from tessera.dtypes.casting import cast
from tessera.dtypes.types import BY_NAME, DType, f64
from tessera.ir.common.elements import element_of
from tessera.targets.cuda.ir.layouts import accumulator
from tessera.targets.cuda.ir.wgmma import left_operand_layout

Array = np.ndarray[Any, Any]
EIGHTS, WHOLE = ("f8e4m3", "f8e5m2"), ("i8", "u8")
TYPES = [
    *((left, right, "f32") for left in EIGHTS for right in EIGHTS),
    *((left, right, total) for left in WHOLE for right in WHOLE for total in ("i32", "u32")),
    *((one, one, "f32") for one in ("tf32", "f16", "bf16")),
]
COLUMNS = 48
"""Of the product: its rows are 64, and its depth is two panels of 128 bytes."""

_SOURCE = """
#sums = #nv.layout<SUMS>
#left = #nv.layout<LEFT>
!left = !tile.view<2, A, global>
!right = !tile.view<2, B, global>
!total = !tile.view<2, C, global>
!deep_a = !nv.shared<64xDEEPxA, 128>
!deep_b = !nv.shared<48xDEEPxB, 128>
!wide_a = !nv.shared<64xWIDExA, 128>
!wide_b = !nv.shared<48xWIDExB, 128>
!map_a = !nv.map<WIDEx64xA, 128>
!map_b = !nv.map<WIDEx48xB, 128>
!sums = tensor<64x48xC, #sums>
!held = tensor<64xDEEPxA, #left>
!one = !nv.mbarriers<1>
nv.func @multiply(%a: !left, %b: !right, %c: !total) outputs 1 shapes [[M, K], [N, K], [M, N]]
    grid [1] threads 128 attributes {persistent = 1 : i64, blocks = 1 : i64} {
  %0 = arith.constant 0 : i32
  %1 = arith.constant 1 : i32
  %wide = arith.constant WIDE : i32
  %zero = arith.constant 0 : index
  %map_a = nv.tensor_map %a <[1, 0]> : !left -> !map_a
  %map_b = nv.tensor_map %b <[1, 0]> : !right -> !map_b
  %mem_a = nv.alloc : !deep_a
  %mem_b = nv.alloc : !deep_b
  %full = nv.mbarriers : !one
  %thread = nv.id<thread>
  %is_first = arith.cmpi eq, %thread, %0 : i32
  scf.if %is_first {
    nv.mbarrier_init %full, 1 : !one
    nv.fence<init>
    nv.fence<async>
    nv.mbarrier_expect %full[%0], 28672 : !one
    %panels_a = nv.recast %mem_a : !deep_a -> !nv.shared<2x64xWIDExA, 128>
    %panels_b = nv.recast %mem_b : !deep_b -> !nv.shared<2x48xWIDExB, 128>
    %a0 = nv.slot %panels_a[%0] : !nv.shared<2x64xWIDExA, 128> -> !wide_a
    %a1 = nv.slot %panels_a[%1] : !nv.shared<2x64xWIDExA, 128> -> !wide_a
    %b0 = nv.slot %panels_b[%0] : !nv.shared<2x48xWIDExB, 128> -> !wide_b
    %b1 = nv.slot %panels_b[%1] : !nv.shared<2x48xWIDExB, 128> -> !wide_b
    nv.tma_load %map_a[%0, %0], %a0, %full[%0] : !map_a, !wide_a, !one
    nv.tma_load %map_a[%wide, %0], %a1, %full[%0] : !map_a, !wide_a, !one
    nv.tma_load %map_b[%0, %0], %b0, %full[%0] : !map_b, !wide_b, !one
    nv.tma_load %map_b[%wide, %0], %b1, %full[%0] : !map_b, !wide_b, !one
  }
  nv.barrier
  nv.mbarrier_wait %full[%0], %0 : !one
  PRODUCT
  %d = nv.wgmma_wait 0, %s : !sums
  tile.store %d, %c[%zero, %zero] : !sums, !total
  nv.return
}
"""
_SHARED = "%s = nv.wgmma %mem_a, transposed %mem_b : !deep_a, !deep_b -> !sums"
# Twice: the second goes on from the sums of the first.
_REGISTERS = """%l = tile.load %a[%zero, %zero] : !left -> !held
  %f = nv.wgmma %l, transposed %mem_b : !held, !deep_b -> !sums
  %g = nv.wgmma_wait 0, %f : !sums keeping %l : !held
  %s = nv.wgmma %mem_a, transposed %mem_b onto %g : !deep_a, !deep_b -> !sums"""


def source(left: str, right: str, total: str, *, in_registers: bool) -> str:
    """a · bᵀ, or twice that with `a` in registers the first time."""
    dtype = BY_NAME[left]
    wide = 128 // dtype.storage.itemsize
    words = {
        "PRODUCT": _REGISTERS if in_registers else _SHARED,
        "SUMS": str(accumulator(64, COLUMNS)),
        "LEFT": str(left_operand_layout(2 * wide, dtype)),
        "WIDE": str(wide),
        "DEEP": str(2 * wide),
    }
    made = _SOURCE
    for word, written in words.items():
        made = made.replace(word, written)
    for letter, name in (("A", left), ("B", right), ("C", total)):
        element = str(element_of(BY_NAME[name]))
        made = made.replace(f"x{letter},", f"x{element},").replace(f", {letter}, global", f", {element}, global")
    return made


def operands(left: DType, right: DType, seed: int = 0) -> tuple[Array, Array]:
    """Small numbers, of which products and sums are exact, fewer than the tile has."""
    chance = np.random.default_rng(seed)
    depth = 256 // left.storage.itemsize - 16 // left.storage.itemsize
    low = 0 if "u8" in (left.name, right.name) else -4
    whole = [chance.integers(low, 5, (rows, depth)).astype(np.float64) for rows in (63, 41)]
    a, b = (cast(x, f64, dtype) for x, dtype in zip(whole, (left, right), strict=True))
    return a, b


def truth(a: Array, b: Array, total: DType) -> Array:
    """The product; negative sums wrap around in an unsigned type."""
    found = a.astype(np.float64) @ b.astype(np.float64).T
    return found.astype(np.int64).astype(total.storage) if total.is_integer else found
