"""Kernels for sm_90a in the interpreter: golden texts are right in any order of warpgroups, broken ones are told so."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import golden_kernels as golden
from tessera.errors import CompileError, RaceError, ShapeError, TesseraError
from tessera.targets import text
from tessera.targets.cuda.interpreter.hopper import run_warpgroups

Array = np.ndarray[Any, Any]
TYPES = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}
BOUNDS = {"f16": 1e-3, "bf16": 8e-3}
ATTENTION = [(name, int(name.split("_")[2]), "causal" in name) for name in golden.names() if "attention" in name]


def error_of(found: Array, truth: Array) -> float:
    return float(np.linalg.norm(found.astype(np.float64) - truth) / np.linalg.norm(truth))


def attention_error(
    source: str, size: int, causal: bool, shape: tuple[int, int, int], element: str = "f16", **options: Any
) -> float:
    """How far a text of attention is off; NaN where something was not written."""
    b, h, s = shape
    chance = np.random.default_rng(0)
    # Heads lie between rows, as a projection leaves them; the scores of some rows rise from block to block.
    q, k, v, out = (chance.standard_normal((b, s, h, size)).astype(TYPES[element]).swapaxes(1, 2) for _ in range(4))
    k[:, :, : s // 2] = (3 * k[:, :, : s // 2].astype(np.float32)).astype(TYPES[element])
    out[...] = np.nan
    scale = 1 / math.sqrt(size)
    run_warpgroups(text.read(source), "attention", [q, k, v, math.log2(math.e) * scale, out], **options)
    q, k, v = (array.astype(np.float64) for array in (q, k, v))
    scores = scale * (q @ k.swapaxes(-1, -2))
    if causal:
        scores = np.where(np.tril(np.ones((s, s), np.bool_)), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return error_of(out, weights / weights.sum(-1, keepdims=True) @ v)


def gemm_error(source: str, transposed: bool, m: int, n: int, k: int, **options: Any) -> float:
    chance = np.random.default_rng(1)
    a, b = (chance.standard_normal(shape).astype(TYPES["bf16"]) for shape in ((m, k), (n, k)))
    out = np.full((m, n), np.nan, TYPES["bf16"])
    right = b if transposed else np.ascontiguousarray(b.T)
    run_warpgroups(text.read(source), "gemm", [a, right, out], **options)
    return error_of(out, a.astype(np.float64) @ b.T.astype(np.float64))


@pytest.mark.quick(2)
@pytest.mark.parametrize(("name", "size", "causal"), ATTENTION)
@pytest.mark.parametrize(
    ("shape", "blocks", "seed"), [((1, 1, 1), 1, None), ((1, 1, 65), 1, 0), ((1, 3, 300), 2, 1), ((2, 1, 193), 2, 2)]
)
def test_attention(
    name: str, size: int, causal: bool, shape: tuple[int, int, int], blocks: int, seed: int | None
) -> None:
    for element in golden.ELEMENTS[: 1 if shape[2] > 65 else 2]:
        source = golden.source(name, element)
        assert attention_error(source, size, causal, shape, element, blocks=blocks, seed=seed) < BOUNDS[element]


@pytest.mark.quick
@pytest.mark.parametrize("name", ["gemm", "gemm_kn"])
@pytest.mark.parametrize(
    ("shape", "blocks", "seed"), [((1, 8, 16), 2, None), ((130, 264, 64), 2, 0), ((257, 72, 136), 4, 1)]
)
def test_product(name: str, shape: tuple[int, int, int], blocks: int, seed: int | None) -> None:
    assert gemm_error(golden.source(name, "bf16"), name == "gemm", *shape, blocks=blocks, seed=seed) < BOUNDS["bf16"]


# Broken texts


def broken(name: str, old: str, new: str) -> str:
    source = golden.source(name, "f16")
    assert old in source
    return source.replace(old, new)


ARRIVE_V = "nv.mbarrier_arrive %v_empty[%slot] if %leads : !two"


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("full_128", ARRIVE_V, "", r"deadlock: warpgroup 0 of block 0 waits for %v_empty"),
        ("full_128", "%k_full[%slot1], 20480", "%k_full[%slot1], 20496", "waits for %k_full"),
        ("full_64", "if %leads : !two", ": !two", "waits for %k_full"),
        ("full_64", "%s = nv.wgmma_wait 1, %s_begun", "%s = nv.wgmma_wait 2, %s_begun", "handed on while"),
        ("full_64", "nv.partial<max> %s, 1", "nv.partial<max> %s_begun, 1", "an accumulator whose dot may still run"),
        ("full_64", "      nv.fence<async>\n      nv.barrier_sync", "      nv.barrier_sync", "without a fence"),
        ("full_64", "    nv.mbarrier_init %q_full, 1 : !two\n", "", "used before it was initialised"),
        ("causal_64", "        nv.reset 1\n", "", "counters are left at"),
        ("causal_64", "scf.if %sends {\n      nv.tma_wait 0\n    }\n", "", "while its copies or dots are in flight"),
        ("causal_64", "nv.mbarrier_wait %t_full[%pair], %pair_phase : !two\n", "", "is read before it was written"),
        (
            "full_64",
            "nv.setmaxnreg<dec> 32\n    scf.if %is_first {",
            "scf.if %is_first {\n    nv.setmaxnreg<dec> 32",
            "a part",
        ),
        (
            "full_64",
            "scf.if %is_first {\n      // Slots",
            "scf.if %produces {\n      // Slots",
            "more than the 1 arrivals of an mbarrier",
        ),
        ("full_64", "nv.barrier_sync %out_barrier, 128", "nv.barrier_sync %2, 128", "threads came to a barrier of"),
    ],
)
def test_what_is_broken_is_told(name: str, old: str, new: str, said: str) -> None:
    source = broken(f"attention_{name}", old, new)
    size = int(name.split("_")[1])
    with pytest.raises(RaceError, match=said) as raised:
        attention_error(source, size, "causal" in name, (1, 2, 300), blocks=2, seed=0)
    assert raised.value.hint


def given_up_early(source: str) -> str:
    """A warpgroup is done with keys before their products are."""
    arrive = "nv.mbarrier_arrive %k_empty[%k_slot] if %leads : !two\n"
    assert arrive in source
    return source.replace(arrive, "").replace("%s_begun = nv.wgmma", f"{arrive}%s_begun = nv.wgmma")


def read_early(source: str) -> str:
    """Products of values begin that may not be there yet."""
    wait = "nv.mbarrier_wait %v_full[%slot], %phase : !two\n"
    assert wait in source
    return source.replace(wait, "")


def moved_too_little(source: str) -> str:
    assert "tile.reduce<max> %top, 1" in source
    return source.replace("tile.reduce<max> %top, 1", "tile.reduce<min> %top, 1")


@pytest.mark.quick(1)
@pytest.mark.parametrize("mistake", [given_up_early, read_early, moved_too_little])
def test_other_mistakes_show_in_the_result(mistake: Callable[[str], str]) -> None:
    """What is read too early is not a number, or random; some order of warpgroups shows it."""
    source = mistake(golden.source("attention_full_128", "f16"))

    def shows(seed: int) -> bool:
        try:
            return not attention_error(source, 128, False, (1, 2, 500), blocks=2, seed=seed) < BOUNDS["f16"]
        except TesseraError:
            return True

    assert any(shows(seed) for seed in range(3))


def test_one_cluster_has_all_its_blocks() -> None:
    with pytest.raises(CompileError, match="3 blocks are no whole clusters of 2"):
        gemm_error(golden.source("gemm", "bf16"), True, 8, 8, 16, blocks=3)


def run_text(body: str, threads: int = 128) -> None:
    module = text.read(f"nv.func @f() outputs 0 shapes [] grid [1] threads {threads} {{\n{body}\nnv.return\n}}")
    run_warpgroups(module, "f", [])


def test_numbers_of_threads() -> None:
    """Each thread has its own numbers; a counter adds up what those give that take a branch."""
    with pytest.raises(RaceError, match=r"counters are left at \[496, 4, 128, 0"):
        run_text(
            """
            %0 = arith.constant 0 : i32
            %1 = arith.constant 1 : i32
            %32 = arith.constant 32 : i32
            %lane = nv.id<lane>
            %thread = nv.id<thread>
            %first = arith.cmpi ult, %thread, %32 : i32
            scf.if %first {
              %a = nv.count 0, %lane
            }
            %leads = arith.cmpi eq, %lane, %0 : i32
            %chosen = scf.if %leads -> (i32) {
              scf.yield %1 : i32
            } else {
              scf.yield %0 : i32
            }
            %b = nv.count 1, %chosen
            %c = nv.count 2, %1
            """
        )


def test_what_has_to_be_the_same_for_all_threads() -> None:
    words = "%lane = nv.id<lane>\n%w = nv.words : !nv.words<2>\n"
    with pytest.raises(CompileError, match=r"operands of nv\.put are not the same for all threads"):
        run_text(f"{words}nv.put %lane, %w[%lane] : !nv.words<2>")
    with pytest.raises(CompileError, match="the condition of a loop is not the same"):
        run_text(
            f"""{words}%c = arith.cmpi eq, %lane, %lane : i32
            %one = arith.constant 1 : i32
            %d = arith.cmpi ult, %lane, %one : i32
            scf.while () : () -> () {{
              scf.condition(%d)
            }} do {{
              scf.yield
            }}"""
        )


def test_slots_that_are_not_there() -> None:
    with pytest.raises(ShapeError, match="mbarrier 2 of 2"):
        run_text(
            """
            %two = arith.constant 2 : i32
            %b = nv.mbarriers : !nv.mbarriers<2>
            nv.mbarrier_arrive %b[%two] : !nv.mbarriers<2>
            """
        )


COPY = """
nv.func @f(%x: !tile.view<1, f16, global>) outputs 0 shapes [[N]] grid [1] threads 128 {
  %0 = arith.constant 0 : i32
  %m = nv.tensor_map %x <[0 inner 64, 0 outer 64]> : !tile.view<1, f16, global> -> !nv.map<64x1xf16, 128>
  %s = nv.alloc : !nv.shared<1x64xf16, 128>
  %b = nv.mbarriers : !nv.mbarriers<1>
  nv.mbarrier_init %b, 1 : !nv.mbarriers<1>
  %lane = nv.id<thread>
  %c = arith.cmpi CONDITION, %lane, %0 : i32
  scf.if %c {
    nv.tma_load %m[%0, %0], %s, %b[%0] : !nv.map<64x1xf16, 128>, !nv.shared<1x64xf16, 128>, !nv.mbarriers<1>
  }
  nv.return
}
"""


def test_one_thread_begins_a_copy_of_what_is_there() -> None:
    x = np.zeros(64, np.float16)
    run_warpgroups(text.read(COPY.replace("CONDITION", "eq")), "f", [x])
    with pytest.raises(RaceError, match="127 threads begin the same copy"):
        run_warpgroups(text.read(COPY.replace("CONDITION", "ne")), "f", [x])
    with pytest.raises(ShapeError, match="a tensor map reaches beyond axis 0, which has 63 elements"):
        run_warpgroups(text.read(COPY.replace("CONDITION", "eq")), "f", [x[:63]])
