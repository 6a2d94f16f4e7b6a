"""Agents of the pipe dialect as warpgroups of sm_90a: they mean the same, assemble clean, and refuse what cannot be."""

from __future__ import annotations

import math
import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from ptx_checks import check_clean, count
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp

import golden_kernels
from tessera.errors import CompileError
from tessera.interpreters.core.engine import symbol_in
from tessera.ir.pipe import copies as pipe
from tessera.ir.pipe import warp_groups
from tessera.ir.tile import dialect as tile
from tessera.targets import text
from tessera.targets.cuda.compile import CompiledPtx, compile_lowered
from tessera.targets.cuda.emit.emitter import Emitter
from tessera.targets.cuda.hopper.barrier_sharing import leaders
from tessera.targets.cuda.hopper.kernel_setup import share_registers
from tessera.targets.cuda.hopper.pipeline_state import share_pipeline_states
from tessera.targets.cuda.hopper.shared_memory import RingPlan
from tessera.targets.cuda.hopper.tma_boxes import Box, box_of, is_mapped
from tessera.targets.cuda.hopper.warp_groups_to_nv import can_lower, lower_warp_groups
from tessera.targets.cuda.hopper.warp_vote_max import vote_before_max
from tessera.targets.cuda.interpreter.hopper import run_warpgroups
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.ir import hopper, wgmma
from tessera.targets.cuda.ir.layouts import accumulator
from tessera.targets.cuda.lower.budget import shared_bytes
from tessera.targets.cuda.lower.multiprocessor_model import BOXING_REGISTERS
from tessera.targets.cuda.ptx.assembler import assemble

Array = np.ndarray[Any, Any]
bf16 = np.dtype(ml_dtypes.bfloat16)
FOLDER = golden_kernels.FOLDER / "pipe"
GEMM, ATTENTION = (FOLDER.joinpath(f"{name}.pipe").read_text("utf-8") for name in ("gemm", "attention"))


def changed(source: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert old in source, old
        source = source.replace(old, new)
    return source


def function_of(source: str) -> tile.FuncOp:
    module = text.read(source)
    (function,) = (op for op in module.body.block.ops if isinstance(op, tile.FuncOp))
    return function


def lowered(source: str) -> tuple[ModuleOp, nv.FuncOp]:
    module = text.read(source)
    name = function_of(source).sym_name.data
    lower_warp_groups(module, name)
    text.verify(module)
    written = text.write(module)
    assert text.write(text.read(written)) == written
    return module, symbol_in(module, name, nv.FuncOp)


def compiled(source: str) -> CompiledPtx:
    module, function = lowered(source)
    return compile_lowered(module, function.sym_name.data)


def error_of(found: Array, truth: Array) -> float:
    return float(np.linalg.norm(found.astype(np.float64) - truth) / max(1e-9, float(np.linalg.norm(truth))))


# Products of matrices

PACKED = next(line.strip() for line in GEMM.splitlines() if "%packed = tile.ew<cast>" in line)
STORED = "tile.store %packed, %c[%row, %col] : tensor<64x256xbf16>, !matrix"
(SUMS,) = re.findall(r"%sums#\d", PACKED)
TURNED = (
    ("%ring_b = pipe.ring : !pipe.ring<4, 64x256xbf16>", "%ring_b = pipe.ring : !pipe.ring<4, 256x64xbf16>"),
    ("!pipe.ring<4, 64x256xbf16>", "!pipe.ring<4, 256x64xbf16>"),
    ("-> tensor<64x256xbf16>\n        %p0", "-> tensor<256x64xbf16>\n        %p0"),
    ("-> tensor<64x256xbf16>\n          %more", "-> tensor<256x64xbf16>\n          %more"),
    ("pipe.producer_copy %b[%k, %col]", "pipe.producer_copy %b[%col, %k]"),
    (
        "%p0 = pipe.dot_start %a0, %b0,",
        "%t0 = tile.trans %b0, [1, 0] : tensor<256x64xbf16> -> tensor<64x256xbf16>\n%p0 = pipe.dot_start %a0, %t0,",
    ),
    (
        "%more = pipe.dot_start %ak, %bk,",
        "%tk = tile.trans %bk, [1, 0] : tensor<256x64xbf16> -> tensor<64x256xbf16>\n%more = pipe.dot_start %ak, %tk,",
    ),
)
"""b as [N, K]."""
NARROW = (("256", "96"),)
"""Tiles of 128 by 96: panels that are not full, and pieces of a stored tile that overlap."""
WIDE_RESULT = (
    ("%c: !matrix", "%c: !tile.view<2, f32, global>"),
    (PACKED, ""),
    (STORED, f"tile.store {SUMS}, %c[%row, %col] : tensor<64x256xf32>, !tile.view<2, f32, global>"),
)
"""A result that no copy engine takes."""
BIAS = (
    ("%c: !matrix)", "%c: !matrix, %d: !tile.view<1, f32, global>)"),
    ("[c_0, c_1]]", "[c_0, c_1], [c_1]]"),
    (
        PACKED,
        f"""%bias = tile.load %d[%col] : !tile.view<1, f32, global> -> tensor<256xf32>
        %bias_row = tile.expand %bias, 0 : tensor<256xf32> -> tensor<1x256xf32>
        %biases = tile.broadcast %bias_row : tensor<1x256xf32> -> tensor<64x256xf32>
        %with_bias = tile.ew<add> {SUMS}, %biases : tensor<64x256xf32>, tensor<64x256xf32> -> tensor<64x256xf32>
        {PACKED.replace(SUMS, "%with_bias")}""",
    ),
)
"""A row of memory beside the sums, in the layout of those."""


def multiply(source: str, m: int, n: int, k: int, columns: int = 256, **options: Any) -> float:
    """How far a product of odd sizes is off."""
    chance = np.random.default_rng(0)
    a, b = chance.standard_normal((m, k)).astype(bf16), chance.standard_normal((k, n)).astype(bf16)
    d = chance.standard_normal(n).astype(np.float32)
    grid = f"grid [{-(-m // 128)}, {-(-n // columns)}]"
    module, _ = lowered(changed(source, ("grid [32, 16]", grid)))
    wide = "%c: !tile.view<2, f32, global>" in source
    c = np.full((m, n), np.nan, np.float32 if wide else bf16)
    right = np.ascontiguousarray(b.T) if "pipe.producer_copy %b[%col, %k]" in source else b
    biased = "%d:" in source
    run_warpgroups(module, "gemm", [a, right, c, *([d] if biased else [])], **options)
    truth = a.astype(np.float64) @ b.astype(np.float64)
    return error_of(c, truth + d if biased else truth)


@pytest.mark.parametrize(
    ("shape", "blocks", "seed"),
    [((1, 8, 16), 1, None), ((130, 264, 64), 2, 0), ((257, 72, 136), 4, 1), ((40, 300, 0), 1, 2)],
)
def test_a_product(shape: tuple[int, int, int], blocks: int, seed: int | None) -> None:
    assert multiply(GEMM, *shape, blocks=blocks, seed=seed) < 4e-3


@pytest.mark.quick(2)
@pytest.mark.parametrize(
    ("changes", "columns", "bound"),
    [(TURNED, 256, 4e-3), (NARROW, 96, 4e-3), (WIDE_RESULT, 256, 1e-6), (BIAS, 256, 4e-3)],
    ids=["transposed", "narrow", "wide result", "bias"],
)
def test_other_products(changes: tuple[tuple[str, str], ...], columns: int, bound: float) -> None:
    source = changed(GEMM, *changes)
    assert multiply(source, 200, 136, 136, columns, blocks=2, seed=5) < bound
    check_clean(compiled(source).ptx, "sm_90a")


def test_machine_code_of_a_product() -> None:
    made = compiled(GEMM)
    assembly = check_clean(made.ptx, "sm_90a")
    (usage,) = assembly.kernels.values()
    assert not assembly.warnings
    assert (usage.registers, made.threads, made.shared) == (168, 384, 229440)
    # Nobody waits for a launch to look for failures: there are none.
    assert not made.messages
    assert count(made.ptx, "wgmma.mma_async") == 8
    assert made.ptx.count("setmaxnreg.dec.sync.aligned.u32 40;") == 1
    assert made.ptx.count("setmaxnreg.inc.sync.aligned.u32 232;") == 1
    # One copy for a, a panel at a time for b; 64 columns at a time for what is stored.
    assert len(re.findall("complete_tx::bytes", made.ptx)) == 5
    assert made.ptx.count(".bulk_group [") == 4
    assert "div.s64" not in made.ptx


# Clusters

CLUSTER = (
    ("attributes {persistent}", "attributes {persistent, cluster = 2 : i64}"),
    ("%ring_b = pipe.ring :", "%ring_b = pipe.ring multicast :"),
    (
        "%programs = arith.muli %x_count, %y_count : index",
        """%two = arith.constant 2 : index
  %rank = arith.remsi %worker, %two {checked} : index
  %first = arith.divsi %worker, %two {checked} : index
  %steps = arith.divsi %workers, %two {checked} : index
  %x_teams = arith.divsi %x_count, %two {checked} : index
  %programs = arith.muli %x_teams, %y_count : index""",
    ),
    ("%first = pipe.cta_id", "%worker = pipe.cta_id"),
    ("step %workers", "step %steps"),
    (
        "%x = arith.remsi %program, %x_count {checked} : index",
        """%x_team = arith.remsi %program, %x_teams {checked} : index
      %x_first = arith.muli %x_team, %two : index
      %x = arith.addi %x_first, %rank : index""",
    ),
    ("arith.divsi %program, %x_count {checked}", "arith.divsi %program, %x_teams {checked}"),
)
"""Two workers have programs side by side, and share b."""


@pytest.mark.quick(2)
@pytest.mark.parametrize(
    ("shape", "blocks", "seed"),
    [((130, 72, 72), 2, None), ((130, 264, 64), 2, 0), ((500, 300, 136), 4, 1), ((140, 8, 0), 2, 2)],
)
@pytest.mark.parametrize("changes", [(), TURNED], ids=["plain", "transposed"])
def test_clusters(
    changes: tuple[tuple[str, str], ...], shape: tuple[int, int, int], blocks: int, seed: int | None
) -> None:
    assert multiply(changed(GEMM, *changes, *CLUSTER), *shape, blocks=blocks, seed=seed) < 4e-3


@pytest.mark.acceptance
def test_machine_code_of_clusters() -> None:
    for changes, copies in (((), 2), (TURNED, 1)):
        made = compiled(changed(GEMM, *changes, *CLUSTER))
        assembly = check_clean(made.ptx, "sm_90a")
        assert not assembly.warnings
        assert ".reqnctapercluster 2" in made.ptx
        # a for itself, and half of b for both.
        assert len(re.findall("complete_tx::bytes", made.ptx)) == 1 + copies
        assert made.ptx.count(".multicast::cluster") == copies
        # Slots are empty when both blocks say so. Who says so does not wait until all the GPU can see it.
        assert made.ptx.count("mbarrier.arrive.shared::cluster.b64") == 2
        assert "mbarrier.arrive.release.cluster" not in made.ptx
        assert made.ptx.count("barrier.cluster.wait") == 2
    (function,) = (op for op in lowered(changed(GEMM, *CLUSTER))[0].walk() if isinstance(op, nv.FuncOp))
    counts = [op.arrivals.value.data for op in function.walk() if isinstance(op, hopper.MbarrierInitOp)]
    assert counts == [1, 16]


def test_what_cannot_be_cut_is_fetched_by_every_block() -> None:
    """Tiles of one panel, 8 rows of it, have no halves; and clusters are powers of two."""
    for ring, cluster, blocks in (("4, 8x64", 2, 1), ("4, 16x64", 2, 2), ("4, 8x128", 2, 2), ("4, 24x192", 3, 1)):
        head = f"tile.func @f() outputs 0 shapes [] grid [6] attributes {{persistent, cluster = {cluster} : i64}}"
        source = f"{head} {{\n%r = pipe.ring multicast : !pipe.ring<{ring}xbf16>\ntile.return\n}}"
        (op,) = (op for op in function_of(source).walk() if isinstance(op, pipe.RingOp))
        assert RingPlan.of(op, 2, cluster).blocks == blocks


# Attention


def attend(source: str, heads: int, key_heads: int, rows: int, keys: int, **options: Any) -> float:
    chance = np.random.default_rng(1)
    q, out = (chance.standard_normal((heads, rows, 128)).astype(bf16) for _ in range(2))
    k, v = (chance.standard_normal((key_heads, keys, 128)).astype(bf16) for _ in range(2))
    out[...] = np.nan
    module, _ = lowered(source)
    run_warpgroups(module, "attention", [q, k, v, out], **options)
    wide_k, wide_v = (np.repeat(array.astype(np.float64), heads // key_heads, 0) for array in (k, v))
    if not keys:
        return error_of(out, np.zeros(q.shape))
    scores = q.astype(np.float64) @ wide_k.swapaxes(1, 2) / math.sqrt(128)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return error_of(out, weights / weights.sum(-1, keepdims=True) @ wide_v)


@pytest.mark.quick(2, seed=[None, 0, 2, 3])
@pytest.mark.parametrize(
    ("shape", "blocks", "seed"),
    [
        ((1, 1, 1, 1), 1, None),
        ((2, 1, 65, 81), 1, 0),
        ((3, 3, 300, 170), 2, 1),
        ((2, 2, 193, 80), 2, 2),
        ((1, 1, 10, 0), 1, 3),
    ],
)
def test_attention(shape: tuple[int, int, int, int], blocks: int, seed: int | None) -> None:
    assert attend(ATTENTION, *shape, blocks=blocks, seed=seed) < 8e-3


def test_machine_code_of_attention() -> None:
    """Products stay under way: the next weights are packed when those before have been read."""
    made = compiled(ATTENTION)
    assembly = check_clean(made.ptx, "sm_90a")
    (usage,) = assembly.kernels.values()
    assert not assembly.warnings
    assert (usage.registers, made.threads, made.shared, made.messages) == (128, 512, 229472, ())
    assert count(made.ptx, "wgmma.mma_async") == 8 + 13 + 5
    assert made.ptx.count("setmaxnreg.inc.sync.aligned.u32 160;") == 1
    # All panels of a tile at once: queries for each consumer, keys and values twice.
    assert len(re.findall("complete_tx::bytes", made.ptx)) == 3 + 4


def test_registers_are_those_of_the_multiprocessor() -> None:
    assert [share_registers(count) for count in (1, 2, 3, 4)] == [None, (40, 232), (32, 160), (32, 112)]
    for count_ in (2, 3, 4, 5, 6):
        found = share_registers(count_)
        assert found is not None
        fewer, more = found
        launch = 65536 // (128 * (1 + count_)) // 8 * 8
        assert 24 <= fewer <= launch < more
        assert fewer + count_ * more <= launch * (1 + count_)
    # With boxes, where the producer has 56.
    boxing = [share_registers(count, boxes=True) for count in (1, 2, 3, 4)]
    assert boxing == [None, (56, 224), (56, 152), (64, 104)]
    assert all(BOXING_REGISTERS[count] == one[1] for count, one in enumerate(boxing, 1) if one is not None)
    # With a transposer, whose threads have 40.
    transposing = [share_registers(count, transposes=True) for count in (1, 2, 3, 4)]
    assert transposing == [(168, 232), (40, 216), (32, 136), (56, 96)]
    for count_, found in enumerate(transposing, 1):
        launch = 65536 // (128 * (2 + count_)) // 8 * 8
        assert found is not None
        assert found[0] <= launch <= found[1]
        assert found[0] + 40 + count_ * found[1] <= launch * (2 + count_)


def test_registers_can_be_given() -> None:
    module = text.read(GEMM)
    lower_warp_groups(module, "gemm", registers=(40, 232))
    assert [op.count.value.data for op in module.walk() if isinstance(op, hopper.SetmaxnregOp)] == [40, 232]


def test_arguments_without_maps() -> None:
    """Rows of c lie anywhere: threads store it. Rings need maps."""
    module = text.read(GEMM)
    lower_warp_groups(module, "gemm", row_aligned=[0, 1])
    text.verify(module)
    made = compile_lowered(module, "gemm")
    check_clean(made.ptx, "sm_90a")
    assert ".bulk_group [" not in made.ptx
    reason = can_lower(function_of(GEMM), row_aligned=[0, 2])
    assert reason is not None
    assert "are not aligned to 16 bytes" in reason


# Cursors and barriers


def carried(function: tile.FuncOp) -> list[int]:
    """The number of pipeline states that each loop carries."""
    loops = [op for op in function.walk() if isinstance(op, scf.ForOp)]
    return [sum(isinstance(value.type, warp_groups.PipelineStateType) for value in loop.iter_args) for loop in loops]


@pytest.mark.parametrize(
    ("source", "before", "after"),
    [(GEMM, [2, 2, 2, 4], [1, 1, 1, 1]), (ATTENTION, [3, 2, 3, 2], [2, 1, 2, 1])],
    ids=["gemm", "attention"],
)
def test_pipeline_states_in_step_are_one(source: str, before: list[int], after: list[int]) -> None:
    function = function_of(source)
    assert carried(function) == before
    share_pipeline_states(function)
    function.verify()
    assert carried(function) == after


def test_pipeline_states_that_part_stay_apart() -> None:
    """Where there are no keys, one of two rings goes on and the other does not."""
    end = "scf.yield %ck1, %cv1 : !turn, !turn"
    function = function_of(
        changed(ATTENTION, (end, f"%odd = pipe.advance %ck1 : !turn\n{end.replace('%ck1', '%odd')}"))
    )
    share_pipeline_states(function)
    assert carried(function)[:2] == [3, 2]


def test_rings_that_go_together_share_barriers() -> None:
    for source, rings in ((GEMM, 1), (ATTENTION, 3)):
        function = function_of(source)
        share_pipeline_states(function)
        assert len(set(leaders(function).values())) == rings
        _, made = lowered(source)
        assert sum(isinstance(op, hopper.MbarriersOp) for op in made.walk()) == 2 * rings


def test_rings_that_are_released_apart_do_not() -> None:
    release = "pipe.consumer_release %ring_a[%pa] : !pipe.ring<4, 128x64xbf16>, !pipe.pipeline_state<4>\n"
    function = function_of(changed(GEMM, (release, f"{release}pipe.dots_wait 0\n")))
    share_pipeline_states(function)
    assert len(set(leaders(function).values())) == 2


# Boxes

VIEWS = """
!all = !tile.view<4, f16, global>
!rows = !tile.view<2, f16, global>

tile.func @f(%x: !all, %y: !rows, %at: index) outputs 0 shapes [[B, S, H, 128], [S, 128], []] grid [1] {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %p = tile.program_id 0
  %rows = tile.dim %x, 1 : !all
  %other = tile.dim %y, 0 : !rows
  %s0 = tile.stride %x, 0 : !all
  %s1 = tile.stride %x, 1 : !all
  %s2 = tile.stride %x, 2 : !all
  %s3 = tile.stride %x, 3 : !all
  %b = arith.muli %p, %s0 : index
  %h = arith.muli %s2, %at : index
  %bh = arith.addi %b, %h : index
  %view = tile.view %x offset OFFSET sizes[SIZES] strides[STRIDES] : !all -> !rows
  %tile = tile.load %view[%p, %c0] : !rows -> tensor<64x128xf16>
  tile.store %tile, %y[%p, %c0] : tensor<64x128xf16>, !rows
  tile.return
}
"""


def load_of(offset: str, sizes: str, strides: str, *changes: tuple[str, str]) -> tile.LoadOp:
    named = (("OFFSET", offset), ("SIZES", sizes), ("STRIDES", strides), *changes)
    (load,) = (op for op in function_of(changed(VIEWS, *named)).walk() if isinstance(op, tile.LoadOp))
    return load


def test_a_head_is_a_box_of_all_heads() -> None:
    for sizes in ("%rows, %c128", "%other, %c128"):
        load = load_of("%bh", sizes, "%s1, %s3")
        box = box_of(load.view, load.offsets)
        assert isinstance(box, Box)
        assert (box.axes, box.others) == ((1, 3), (2, 0))
        names = [start if isinstance(start, int) else start.name_hint for start in box.starts]
        assert names == ["p", "p", "at", "c0"]
        assert is_mapped(load)
        assert box.splits(128, 64)
        assert not box.splits(64, 64)


@pytest.mark.parametrize(
    ("offset", "sizes", "strides"),
    [
        ("%bh", "%c64, %c128", "%s1, %s3"),
        ("%bh", "%rows, %c64", "%s1, %s3"),
        ("%bh", "%rows, %c128", "%s3, %s1"),
        ("%bh", "%rows, %c128", "%s2, %s3"),
        ("%at", "%rows, %c128", "%s1, %s3"),
        ("%bh", "%rows, %c128", "%c128, %s3"),
        ("%bh", "%rows, %rows", "%s3, %s1"),
    ],
)
def test_what_is_no_box(offset: str, sizes: str, strides: str) -> None:
    load = load_of(offset, sizes, strides)
    assert box_of(load.view, load.offsets) is None
    assert not is_mapped(load)


def test_what_has_no_map() -> None:
    good = ("%bh", "%rows, %c128", "%s1, %s3")
    assert is_mapped(load_of(*good))
    for old, new in (("64x128xf16", "60x128xf16"), ("64x128xf16", "64x120xf16"), ("f16", "f32")):
        assert not is_mapped(load_of(*good, (old, new)))
    padded = load_of(*good, ("%view[%p, %c0] :", "%view[%p, %c0] pad 1.0 :"))
    assert padded.pad_value == 1
    assert not is_mapped(padded)
    for width, mapped in ((128, True), (64, True), (48, False)):
        function = function_of(
            changed(VIEWS, ("OFFSET", good[0]), ("SIZES", good[1]), ("STRIDES", good[2]), ("64x128", f"64x{width}"))
        )
        (store,) = (op for op in function.walk() if isinstance(op, tile.StoreOp))
        assert is_mapped(store) is mapped


# Refusals

FOLDED = f"""%columns = tile.reduce<sum> {SUMS}, 0 : tensor<64x256xf32> -> tensor<256xf32>
      %column_row = tile.expand %columns, 0 : tensor<256xf32> -> tensor<1x256xf32>
      %all = tile.broadcast %column_row : tensor<1x256xf32> -> tensor<64x256xf32>
      {PACKED.replace(SUMS, "%all")}"""
READ_BACK = f"""%old = tile.load %c[%top, %col] : !matrix -> tensor<64x256xbf16>
      {PACKED}"""
HALVES = """%half = arith.constant 0.5 : bf16
        %b0 = tile.full %half : tensor<64x256xbf16>
        %taken = pipe.consumer_wait %ring_b[%cb1]"""
TOGETHER = f"""%above = tile.ew<gt> {SUMS}, %none : tensor<64x256xf32>, tensor<64x256xf32> -> tensor<64x256xi1>
      %some = tile.any %above : tensor<64x256xi1>
      %chosen = scf.if %some -> (tensor<64x256xf32>) {{
        scf.yield {SUMS} : tensor<64x256xf32>
      }} else {{
        scf.yield %none : tensor<64x256xf32>
      }}
      {PACKED.replace(SUMS, "%chosen")}"""
TALL = [
    ("pipe.warp_specialize 2", "pipe.warp_specialize 1"),
    ("tensor<64x64xbf16>", "tensor<128x64xbf16>"),
    ("64x256xf32>", "128x256xf32>"),
    (PACKED.replace("64x256xf32", "128x256xf32"), PACKED.replace("64x256", "128x256")),
    (STORED, STORED.replace("64x256", "128x256")),
]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ([(PACKED, READ_BACK)], "reads memory that it writes"),
        ([(PACKED, TOGETHER)], "a branch depends on several rows of a tile"),
        ([("bf16", "f32")], "wgmma has no dot of"),
        (TALL, "a dot of .*128x64xbf16.*: wgmma has 64 rows"),
        ([("%b0 = pipe.consumer_wait %ring_b[%cb1]", HALVES)], "a right operand is computed"),
    ],
)
def test_what_cannot_be_lowered(changes: list[tuple[str, str]], said: str) -> None:
    source = changed(GEMM, *changes)
    reason = can_lower(function_of(source))
    assert reason is not None
    assert re.search(said, reason)
    with pytest.raises(CompileError, match=said):
        lowered(source)


def test_folds_across_warps_meet_in_their_warp_group() -> None:
    """Through shared memory of its own, at a named barrier of its own: no other warp group waits."""
    source = changed(GEMM, (PACKED, FOLDED))
    assert can_lower(function_of(source)) is None
    module, function = lowered(source)
    program = compile_lowered(module, function.sym_name.data)
    barriers = re.findall(r"bar\.sync (%r\d+), 128;", program.ptx)
    assert barriers
    assert len(barriers) % 2 == 0
    assert not [remark for remark in assemble(program.ptx, "sm_90a").warnings if remark.slows]
    assert shared_bytes(function) == program.shared


def test_copies_of_what_is_no_box() -> None:
    source = changed(
        ATTENTION,
        ("%k_head = tile.view %k offset %k_at sizes[%keys,", "%k_head = tile.view %k offset %k_at sizes[%c64,"),
    )
    assert can_lower(function_of(source)) == "a tile is copied that is not a box of an argument"


def test_nothing_is_lowered_without_roles() -> None:
    assert can_lower(
        function_of(
            changed(VIEWS, *zip(("OFFSET", "SIZES", "STRIDES"), ("%bh", "%rows, %c128", "%s1, %s3"), strict=True))
        )
    ) == ("expected one pipe.warp_specialize, got 0")


# Votes

VOTE = """
#sums = #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 10:1*8]>
#row = #nv.layout<[4:_, 8:0*1, 4:0*16], [2:0*8]>
!scores = tensor<64x80xf32, #sums>
!row = tensor<64xf32, #row>
!flags = tensor<64xi1, #row>
!matrix = !tile.view<2, f32, global>
!vector = !tile.view<1, f32, global>

nv.func @f(%x: !matrix, %y: !vector, %z: !vector) outputs 0 shapes [[M, N], [M], [M]] grid [1] threads 128 {
  %0 = arith.constant 0 : index
  %s = tile.load %x[%0, %0] : !matrix -> !scores
  %limit = tile.load %y[%0] : !vector -> !row
  %top = tile.reduce<top> %s, 1 : !scores -> !row
  %rises = tile.ew<gt> %top, %limit : !row, !row -> !flags
  %any = nv.any %rises : !flags
  %moved = scf.if %any -> (!row) {
    %new = tile.ew<select> %rises, %top, %limit : !flags, !row, !row -> !row
    scf.yield %new : !row
  } else {
    scf.yield %limit : !row
  }
  tile.store %moved, %z[%0] : !row, !vector
  nv.return
}
"""


@pytest.mark.parametrize("order", ["%top, %limit", "%limit, %top"])
def test_threads_vote_on_what_they_hold(order: str) -> None:
    kind = "gt" if order.startswith("%top") else "lt"
    module = text.read(changed(VOTE, ("tile.ew<gt> %top, %limit", f"tile.ew<{kind}> {order}")))
    function = symbol_in(module, "f", nv.FuncOp)
    vote_before_max(function)
    text.verify(module)
    (branch,) = (op for op in function.walk() if isinstance(op, scf.IfOp))
    (reduction,) = (op for op in function.walk() if isinstance(op, tile.ReduceOp))
    assert branch.true_region.is_ancestor(reduction)
    assert sum(isinstance(op, wgmma.PartialOp) for op in function.walk()) == 1
    chance = np.random.default_rng(3)
    x, y = chance.standard_normal((64, 80)).astype(np.float32), np.full(64, 2.5, np.float32)
    x[16:48] = np.minimum(x[16:48], 1)
    z = np.full(64, np.nan, np.float32)
    run_warpgroups(module, "f", [x, y, z], blocks=1)
    np.testing.assert_array_equal(z, np.maximum(x.max(1), y))
    assert (z[16:48] == y[16:48]).all()
    check_clean(compile_lowered(module, "f").ptx, "sm_90a")


def test_a_maximum_that_others_want_is_made_before_the_vote() -> None:
    module = text.read(changed(VOTE, ("tile.store %moved,", "tile.store %top,")))
    before = text.write(module)
    vote_before_max(symbol_in(module, "f", nv.FuncOp))
    assert text.write(module) == before


# The emitter and warp groups


def test_each_warpgroup_stores_its_own_rows() -> None:
    """A tile of 128 threads is every warpgroup's own: none is a replica of the first."""
    _, function = lowered(changed(GEMM, *WIDE_RESULT))
    assert Emitter(function).first_replica(accumulator(64, 256)) is None
    assert Emitter(function).cooperating == 128


def test_the_extent_of_a_grid() -> None:
    module = text.read(
        """
        nv.func @f(%x: !tile.view<1, i32, global>) outputs 0 shapes [[N]] grid [3, 5] threads 128 {
          %0 = arith.constant 0 : index
          %a = nv.extent 0
          %b = nv.extent 1
          %1 = arith.muli %a, %b : i32
          %t = tile.full %1 : tensor<1xi32, #nv.layout<[128:_], []>>
          tile.store %t, %x[%0] : tensor<1xi32, #nv.layout<[128:_], []>>, !tile.view<1, i32, global>
          nv.return
        }
        """
    )
    found = np.zeros(1, np.int32)
    run_warpgroups(module, "f", [found], blocks=1)
    assert found == 15
    assert "ld.param" in compile_lowered(module, "f").ptx
