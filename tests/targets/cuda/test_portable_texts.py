"""Golden texts of the portable path: they assemble without spills, have the intended instructions, and are right."""

from __future__ import annotations

from functools import cache

import ml_dtypes
import numpy as np
import ptx_checks
import pytest
from gpu_options import gpu
from ptx_runs import no_conflicts, numbers, run

import golden_kernels
from golden_kernels import function_of
from tessera.dtypes import types as dt
from tessera.targets import text
from tessera.targets.cuda.compile import CompiledPtx, compile_lowered

FOLDER = golden_kernels.FOLDER / "portable"
TEXTS = sorted(entry.name.removesuffix(".nv") for entry in FOLDER.iterdir())


def golden(name: str) -> str:
    return FOLDER.joinpath(f"{name}.nv").read_text("utf-8")


@cache
def golden_program(name: str, arch: str) -> CompiledPtx:
    module = text.read(golden(name))
    return compile_lowered(module, function_of(module).sym_name.data, gpu(arch))


@pytest.mark.parametrize("name", TEXTS)
def test_golden_texts_are_read_and_written(name: str) -> None:
    written = text.write(text.read(golden(name)))
    assert text.write(text.read(written)) == written


REGISTERS = {
    "gemm": 236,
    "gemm_transposed": 238,
    "gemm_wide": 228,
    "attention_full_64": 226,
    "attention_causal_64": 230,
    "attention_full_128": 255,
    "attention_causal_128": 255,
}


@pytest.mark.quick(3)
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("name", TEXTS)
def test_golden_texts_assemble_without_spills(name: str, arch: str) -> None:
    program = golden_program(name, arch)
    assembly = ptx_checks.check_clean(program.ptx, arch)
    (usage,) = assembly.kernels.values()
    ptx_checks.check_registers(usage, REGISTERS[name])


@pytest.mark.quick(3)
@pytest.mark.parametrize(
    ("name", "mma", "ldmatrix", "copies", "turned"),
    [
        # Fragments of a turn: 4 steps of 4 rows and 4 pairs of columns, and those of the first step, once more.
        ("gemm", 128, 32 + 8, 3 * 16, 16 + 4),
        ("gemm_transposed", 128, 32 + 8, 3 * 16, 0),
        ("gemm_wide", 128, 32 + 8, 4 * 12, 16 + 4),
        # Two loops; in each, keys for the scores and values for the sums, and queries if they are not held.
        ("attention_full_64", 2 * 128, 2 * 32 + 8, 8 + 3 * 8, 2 * 16),
        ("attention_causal_64", 2 * 128, 2 * 32 + 8, 8 + 3 * 8, 2 * 16),
        ("attention_full_128", 2 * 256, 2 * 80, 16 + 3 * 16, 2 * 32),
        ("attention_causal_128", 2 * 256, 2 * 80, 16 + 3 * 16, 2 * 32),
    ],
)
def test_golden_texts_have_the_intended_instructions(
    name: str, mma: int, ldmatrix: int, copies: int, turned: int
) -> None:
    ptx = golden_program(name, "sm_90a").ptx
    assert ptx_checks.count(ptx, "mma.sync") == mma
    assert ptx_checks.count(ptx, "ldmatrix") == ldmatrix
    assert ptx_checks.count(ptx, "ldmatrix.sync.aligned.m8n8.x4.trans") == turned
    assert ptx_checks.count(ptx, "cp.async.cg") == copies
    assert ptx_checks.count(ptx, "ldmatrix.sync.aligned.m8n8.x4") == ldmatrix


@pytest.mark.quick(1, name=["gemm_transposed", "gemm_wide"])
@pytest.mark.parametrize("name", [name for name in TEXTS if name.startswith("gemm")])
def test_golden_products_are_right(name: str) -> None:
    rows, columns, depth = 136, 200, 200
    a, b = numbers(1, (rows, depth), dt.bf16), numbers(2, (depth, columns), dt.bf16)
    c = np.full((rows, columns), np.nan, ml_dtypes.bfloat16)
    wide = 256 if name == "gemm_wide" else 128
    blocks = 2 * -(-columns // wide)
    given_b = np.ascontiguousarray(b.T) if name == "gemm_transposed" else b
    machines = run(golden_program(name, "sm_90a"), [a, given_b, c], blocks)
    no_conflicts(machines, "cp.async", "ldmatrix", *(["st.shared", "ld.shared"] if name == "gemm_wide" else []))
    truth = a.astype(np.float64) @ b.astype(np.float64)
    assert np.abs(c.astype(np.float64) - truth).max() < 4e-3 * np.abs(truth).max()


@pytest.mark.acceptance
@pytest.mark.quick(name=["attention_causal_64"])
@pytest.mark.parametrize("name", [name for name in TEXTS if name.startswith("attention")])
def test_golden_attention_is_right(name: str) -> None:
    _, mask, width = name.split("_")
    size, heads = 150, 2
    q, k, v = (numbers(seed, (1, heads, size, int(width)), dt.f16) for seed in (1, 2, 3))
    o = np.full_like(q, np.nan)
    scale = 3 / float(width) ** 0.5
    machines = run(golden_program(name, "sm_90a"), [q, k, v, scale * np.log2(np.e).item(), o], 2 * heads)
    no_conflicts(machines, "cp.async", "ldmatrix", "st.shared", "ld.shared")
    scores = np.einsum("bhqd,bhkd->bhqk", q.astype(np.float64), k.astype(np.float64)) * scale
    if mask == "causal":
        scores = np.where(np.tril(np.ones((size, size), bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    truth = weights / weights.sum(-1, keepdims=True) @ v.astype(np.float64)
    assert np.abs(o.astype(np.float64) - truth).max() < 4e-3
