"""Sums of floats in memory on a GPU: blocks add one after the other, so that the bits are the same every time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gpu_options import gpu
from nv_runs import at_nv_level, lowered
from xdsl.dialects.builtin import ModuleOp

import tessera as ts
from tessera import kernel, knobs, tile
from tessera.errors import CompileError
from tessera.targets import text
from tessera.targets.cuda.compile import compile_kernel
from tessera.targets.cuda.ptx.assembler import assemble
from tessera.tile.calls.settings import Settings, target_of

VIEW = "!tile.view<1, f32, global>"


def sums(kind: str = "sum", grid: str = '"(M + 63)//64"', *, dtype: str = "f32", inner: bool = False) -> ModuleOp:
    """Tiles of 64 are added to the same 64 places; `inner`, in a loop and at two places."""
    view, held = f"!tile.view<1, {dtype}, global>", f"tensor<64x{dtype}>"
    step = f"tile.atomic<{kind}> %t, %y[%zero] : {held}, {view}"
    if inner:
        step = f"scf.for %i = %zero to %two step %one {{\n{step}\ntile.atomic<{kind}> %t, %y[%i] : {held}, {view}\n}}"
    return text.read(f"""
tile.func @k(%x: {view}, %y: {view}) outputs 1 shapes [[M], [N]] grid [{grid}] {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %width = arith.constant 64 : index
  %number = tile.program_id 0
  %at = arith.muli %number, %width : index
  %t = tile.load %x[%at] : {view} -> {held}
  {step}
  tile.return
}}""")


@pytest.mark.parametrize("inner", [False, True])
def test_blocks_add_in_their_order(inner: bool) -> None:
    x = np.random.default_rng(0).standard_normal(64 * 40).astype(np.float32) * np.float32(1e3)
    y = np.zeros(70, np.float32)

    def found(ordered: bool) -> set[bytes]:
        module = lowered(sums(inner=inner), deterministic=ordered)
        return {at_nv_level(module, "k", [x, y], seed=seed)[1].tobytes() for seed in range(5)}

    assert len(found(ordered=True)) == 1
    assert len(found(ordered=False)) > 1


def test_one_waits_in_front_of_the_first_sum_and_passes_on_at_the_end() -> None:
    written = text.write(lowered(sums(inner=True), deterministic=True))
    around = ["scf.for", "nv.barrier", "tile.atomic", "nv.barrier"]
    order = ["tile.load", "nv.semaphore_wait", *around, "nv.semaphore_signal"]
    places = [written.index(order[0])]
    for name in order[1:]:
        places.append(written.index(name, places[-1] + 1))
    assert "counters = 4" in written
    assert text.write(text.read(written)) == written
    assert "semaphore" not in text.write(lowered(sums(inner=True)))


@pytest.mark.parametrize(
    ("module", "waits"),
    [(sums("max"), False), (sums("sum", dtype="i32"), False), (sums("sum", "1"), False), (sums("prod"), True)],
    ids=["max", "integers", "one block", "products"],
)
def test_only_where_the_order_shows(module: ModuleOp, waits: bool) -> None:
    assert ("nv.semaphore_wait" in text.write(lowered(module, deterministic=True))) is waits


def test_machine_code_of_turns() -> None:
    made = compile_kernel(sums(inner=True), "k", gpu(deterministic=True))
    for part in ("ld.acquire.gpu.global", "st.release.gpu.global", "fence.acq_rel.gpu"):
        assert part in made.ptx
    assert made.ptx.count("bar.sync") == 4
    assert assemble(made.ptx, "sm_90a").kernels["k"].spill_stores == 0


def test_keys_of_machine_code_have_the_dial() -> None:
    on, off = (Settings("cuda", "sm_90a", 3, frozenset(), deterministic=dial, demanded=True) for dial in (True, False))
    assert target_of(on) != target_of(off)


@pytest.mark.parametrize(
    ("attributes", "body", "message"),
    [
        ("", "nv.semaphore_wait", "needs a counter"),
        ("attributes {counters = 4 : i64, persistent = 1 : i64} ", "nv.semaphore_signal", "a block for each program"),
        (
            "attributes {counters = 4 : i64} ",
            "%c = arith.constant true\nscf.if %c {\nnv.semaphore_wait\n}",
            "in no loop or branch",
        ),
    ],
)
def test_turns_that_make_no_sense(attributes: str, body: str, message: str) -> None:
    source = f"nv.func @f(%x: {VIEW}) outputs 0 shapes [[M]] grid [M] threads 32 {attributes}{{\n{body}\nnv.return\n}}"
    with pytest.raises(CompileError, match=message):
        text.read(source)


@kernel
def gathered(x: Any, total: Any):
    tile.atomic_add(total, tile.sum(tile.load(x), 0, keepdims=True), at=(0,))


@pytest.mark.gpu
def test_sums_on_a_gpu_are_the_same_every_time_unless_they_need_not_be() -> None:
    x = ts.asarray(np.random.default_rng(0).standard_normal(1_000_000).astype(np.float32)).cuda()

    def run() -> float:
        total = ts.zeros((1,), device="cuda:0")
        gathered(x, total)
        return float(total.cpu().numpy()[0])

    found = {run() for _ in range(200)}
    assert len(found) == 1
    with knobs.deterministic.using(False):
        others = [run() for _ in range(200)]
    assert len(set(others)) > 1
    assert abs(others[0] - found.pop()) < 1e-1
