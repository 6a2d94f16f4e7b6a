"""Tiles of 8 bits that are turned within shared memory: in the interpreter, on the machine for tests, through ptxas."""

from __future__ import annotations

import numpy as np
import pytest
from ptx_checks import check_clean, count
from ptx_runs import no_conflicts, numbers, run, spelled

from tessera.dtypes.types import DType, f8e4m3, u8
from tessera.targets import text
from tessera.targets.cuda.compile import compile_lowered
from tessera.targets.cuda.interpreter.hopper import run_warpgroups
from tessera.targets.cuda.ir.layouts import blocked
from tessera.targets.cuda.ir.types import PAIRED_COLUMNS

SOURCE = """
!view = !tile.view<2, E, global>
!before = tensor<ROWSxCOLUMNSxE, #nv.layout<BEFORE>>
!after = tensor<COLUMNSxROWSxE, #nv.layout<AFTER>>
!from = !nv.shared<ROWSxCOLUMNSxE, 128>
!to = !nv.shared<COLUMNSxROWSxE, 128, ORDER>
!seen = !nv.shared<COLUMNSxROWSxE, 128>
nv.func @k(%x: !view, %y: !view) outputs 1 shapes [[ROWS, COLUMNS], [COLUMNS, ROWS]] grid [1] threads 128 {
  %zero = arith.constant 0 : index
  %from = nv.alloc : !from
  %to = nv.alloc : !to
  %t = tile.load %x[%zero, %zero] : !view -> !before
  nv.write %t, %from : !before, !from
  nv.barrier
  nv.transpose_smem %from, %to : !from, !to
  nv.barrier
  %seen = nv.recast %to : !to -> !seen
  %r = nv.read %seen[0, 0] : !seen -> !after
  tile.store %r, %y[%zero, %zero] : !after, !view
  nv.return
}
"""
LARGE = pytest.param(160, 256, marks=pytest.mark.acceptance)
SHAPES = [(128, 128), (32, 64), (64, 128), (96, 80), LARGE, (192, 96), (256, 16)]


def source(rows: int, columns: int, dtype: DType, order: str) -> str:
    words = {
        "BEFORE": str(blocked((rows, columns), 128, 16)),
        "AFTER": str(blocked((columns, rows), 128, 16)),
        "ROWS": str(rows),
        "COLUMNS": str(columns),
        ", ORDER": "" if order == "plain" else ", paired",
    }
    made = SOURCE
    for word, written in words.items():
        made = made.replace(word, written)
    return made.replace(", E,", f", {spelled(dtype)},").replace("xE,", f"x{spelled(dtype)},")


def transposed(x: np.ndarray, order: str) -> np.ndarray:
    """Columns that were rows, and of each 16 of them the order in which they lie."""
    places = [first + place for first in range(0, len(x), 16) for place in PAIRED_COLUMNS]
    return x.T[:, places] if order == "paired" else x.T


@pytest.mark.quick(2)
@pytest.mark.parametrize("order", ["plain", "paired"])
@pytest.mark.parametrize(("rows", "columns"), SHAPES)
def test_every_byte_is_where_it_belongs(rows: int, columns: int, order: str) -> None:
    module = text.read(source(rows, columns, u8, order))
    x, found = numbers(rows, (rows, columns), u8), np.zeros((columns, rows), np.uint8)
    run_warpgroups(module, "k", [x, found], seed=0)
    np.testing.assert_array_equal(found, transposed(x, order))
    program = compile_lowered(module, "k")
    emitted = np.zeros((columns, rows), np.uint8)
    machines = run(program, [x, emitted])
    np.testing.assert_array_equal(emitted, transposed(x, order))
    no_conflicts(machines, "ldmatrix", "stmatrix")


@pytest.mark.quick(1)
@pytest.mark.parametrize("order", ["plain", "paired"])
@pytest.mark.parametrize("dtype", [f8e4m3, u8], ids=str)
def test_it_takes_few_instructions(dtype: DType, order: str) -> None:
    program = compile_lowered(text.read(source(128, 128, dtype, order)), "k")
    check_clean(program.ptx, "sm_90a")
    # 128 by 128 bytes are 32 pieces for four warps; each is read and written at once, and bytes change places.
    assert (count(program.ptx, "ldmatrix"), count(program.ptx, "prmt"), count(program.ptx, "stmatrix")) == (8, 32, 8)
