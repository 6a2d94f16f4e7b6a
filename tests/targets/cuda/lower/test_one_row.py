"""Products of one row on GPUs: their PTX, run thread by thread, gives what the tile program means."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
import pytest
from gpu_options import gpu
from ptx_machine import Launch
from ptx_runs import numbers

from tessera import bf16, f32
from tessera.dtypes.types import DType
from tessera.targets import text
from tessera.targets.cuda.compile import compile_lowered, lower_kernel
from tessera.targets.cuda.ptx.assembler import assemble

ROW = """
tile.func @row(
    %x: !tile.view<2, {type}, global>, %w: !tile.view<2, {type}, global>, %y: !tile.view<2, f32, global>) outputs 1
    shapes [[1, {depth}], [{rows}, {columns}], [1, {width}]] grid [{programs}]
    attributes {{readonly = array<i64: 1>}} {{
  %zero = arith.constant 0 : index
  %step = arith.constant {block} : index
  %program = tile.program_id 0
  %column = arith.muli %program, %step : index
  %nothing = arith.constant 0.0 : f32
  %clear = tile.full %nothing : tensor<1x{block}xf32>
  %a = tile.load %x[%zero, %zero] : !tile.view<2, {type}, global> -> tensor<1x{depth}x{type}>
  {load}
  %c = tile.dot %a, %b, %clear : tensor<1x{depth}x{type}>, tensor<{depth}x{block}x{type}>, tensor<1x{block}xf32>
    -> tensor<1x{block}xf32>
  %t = tile.ew<mul> %c, %c : tensor<1x{block}xf32>, tensor<1x{block}xf32> -> tensor<1x{block}xf32>
  tile.store %t, %y[%zero, %column] : tensor<1x{block}xf32>, !tile.view<2, f32, global>
  tile.return
}}
"""
PLAIN = "%b = tile.load %w[%zero, %column] : !tile.view<2, {type}, global> -> tensor<{depth}x{block}x{type}>"
TRANSPOSED = """%v = tile.load %w[%column, %zero] : !tile.view<2, {type}, global> -> tensor<{block}x{depth}x{type}>
  %b = tile.trans %v, [1, 0] : tensor<{block}x{depth}x{type}> -> tensor<{depth}x{block}x{type}>"""


@pytest.mark.parametrize(
    ("dtype", "depth", "width", "block", "warps", "transposed"),
    [
        (bf16, 128, 32, 16, 4, False),
        (bf16, 256, 16, 16, 8, False),
        (f32, 64, 16, 8, 4, False),
        (bf16, 128, 16, 8, 4, True),
        (f32, 37, 11, 8, 4, False),
        (bf16, 72, 24, 16, 4, True),
    ],
)
def test_threads_add_up_a_row(dtype: DType, depth: int, width: int, block: int, warps: int, transposed: bool) -> None:
    programs = -(-width // block)
    rows, columns = (width, depth) if transposed else (depth, width)
    sizes = {"type": dtype.name, "depth": depth, "width": width, "block": block, "rows": rows, "columns": columns}
    load = (TRANSPOSED if transposed else PLAIN).format(**sizes)
    module = text.read(ROW.format(**sizes, load=load, programs=programs))
    even = all(size * dtype.bits % 128 == 0 for size in (depth, columns, width * f32.bits // dtype.bits))
    lowered, *_ = lower_kernel(module, "row", gpu(warps=warps, row_aligned=range(3) if even else (), follows=True))
    program = compile_lowered(lowered, "row")
    x, w = numbers(1, (1, depth), dtype), numbers(2, (rows, columns), dtype)
    y = np.full((1, width), np.nan, np.float32)
    launch = Launch()
    for array in (x, w, y):
        launch.view(array)
    launch.words += [programs, 1]
    launch.run(program.ptx, program.threads, program.shared, program.block.size, range(programs))
    right = w.astype(np.float64).T if transposed else w.astype(np.float64)
    expected = (x.astype(np.float64) @ right) ** 2
    assert np.linalg.norm(y - expected) <= 2e-6 * np.linalg.norm(expected)


LOAD, WAIT = 0x981, 0x82E
"""The operations LDG and ACQBULK of sm_90."""


def operations(cubin: bytes) -> Iterator[int]:
    """Of the machine instructions of an ELF file, in order: 16 bytes each, the first 12 bits say what it is."""
    (table,) = struct.unpack_from("<Q", cubin, 40)
    width, count, names = struct.unpack_from("<HHH", cubin, 58)
    sections = [struct.unpack_from("<II4Q", cubin, table + width * index) for index in range(count)]
    for name, _, _, _, at, nbytes in sections:
        if cubin.startswith(b".text.", sections[names][4] + name):
            yield from (word & 0xFFF for word in struct.unpack_from(f"<{nbytes // 8}Q", cubin, at)[::2])


def test_weights_are_read_before_the_wait_in_machine_code_too() -> None:
    sizes = {"type": "bf16", "depth": 2048, "width": 512, "block": 16, "rows": 2048, "columns": 512}
    module = text.read(ROW.format(**sizes, load=PLAIN.format(**sizes), programs=32))
    lowered, *_ = lower_kernel(module, "row", gpu(warps=16, row_aligned=range(3), follows=True))
    found = list(operations(assemble(compile_lowered(lowered, "row").ptx, "sm_90a").cubin))
    assert found.count(WAIT) == 1
    wait = found.index(WAIT)
    assert found[:wait].count(LOAD) == 8
    assert found[wait:].count(LOAD) == 8
