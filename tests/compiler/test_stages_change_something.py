"""Every named stage that compiles kernels for GPUs changes some kernel: none is there for nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from gpu_options import gpu
from many_axes import products
from test_cuda_kernel_texts import CASES, Arrays, rows

from tessera import Schedule, bf16, f16, f32, kernel, knobs, stdlib, tile
from tessera.dtypes.types import f8e4m3, i8
from tessera.targets.cuda.compile import compile_kernel
from tessera.targets.cuda.passes import PASSES
from tessera.tile.calls.program_cache import lines_of
from tessera.transforms.core.facts import Facts, observe

library: Any = import_module("library")
warp_specialized: Any = import_module("warp_specialized_kernels")
printing: Any = import_module("printing_kernels")

ARCHITECTURES = ("sm_90a", "sm_80")
_LOCATION = re.compile(r" loc\([^()]*\)")


@kernel
def summed_in_f16(x: Any):
    return tile.sum(tile.load(x))


@kernel
def softmax_of_multiples(x: Any):
    scores = tile.load(x).to(f32) * 0.25
    return tile.exp2(scores - tile.max(scores, keepdims=True))


@kernel
def column_sums(x: Any, sums: Any):
    """Blocks add floats to one row: the order shows."""
    tile.atomic_add(sums, tile.sum(tile.load(x).to(f32), 0), at=(0,))


@kernel
def row_times_matrix(x: Any, weight: Any, y: Any):
    here = tile.context()
    col, acc = tile.program_id(0) * here.n, tile.zeros((1, here.n), f32)
    for k in tile.range(0, x.shape[1], here.k):
        left = tile.load(x, at=(0, k), shape=(1, here.k))
        acc = tile.dot(left, tile.load(weight, at=(k, col), shape=(here.k, here.n)), acc)
    tile.store(y, tile.cast(acc, y.dtype), at=(0, col))


@kernel
def second_of(x: Any, y: Any):
    tile.store(y, tile.load(x[1], at=(tile.program_id(0) * 64,), shape=(64,)), at=(tile.program_id(0) * 64,))


@kernel
def dequantised(x: Any, weight: Any, scales: Any, y: Any):
    """A product with weights of i8, [N, K], and a scale to 128 of a row."""
    here = tile.context()
    row, col = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    acc = tile.zeros((here.m, here.n), f32)
    for k in tile.range(0, x.shape[1], here.k):
        scale = tile.load(scales, at=(col, k // 128), shape=(here.n, 1)).to(f32)
        right = tile.load(weight, at=(col, k), shape=(here.n, here.k)).to(f32) * scale
        acc = tile.dot(tile.load(x, at=(row, k), shape=(here.m, here.k)), tile.cast(right, x.dtype).T, acc)
    tile.store(y, tile.cast(acc, y.dtype), at=(row, col))


@dataclass(frozen=True)
class Case:
    """A call of a kernel, and what its compile knows and is asked for besides."""

    kernel: Any
    given: list[Any]
    static: dict[str, Any] = field(default_factory=dict[str, Any])
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    knows: bool = False
    """Whether all that holds for the arguments is given to the compiler."""


def gemm_block(of: Any, m: int = 128, n: int = 128, k: int = 64, *, size: int = 4096) -> Any:
    return of.with_schedule(Schedule(block=(m, n, k)))[size // m, size // n]


def extra_cases() -> dict[str, Case]:
    """What the library's kernels do not have: consumers that share a block, clusters, narrow types, facts, atomics."""
    new, narrow = Arrays(bf16), Arrays(f8e4m3)
    attention = stdlib.attention.with_schedule(Schedule(block=(128, 128)))
    heads, many = new.heads(), [new(64, 4096, 128) for _ in range(3)]
    square, bytes_ = new(4096, 4096), narrow(4096, 4096)
    return {
        "causal attention, two consumers": Case(attention, heads, {"mask": stdlib.causal}),
        "causal attention of many, sizes known": Case(attention, many, {"mask": stdlib.causal}, knows=True),
        "fp8 attention": Case(attention, narrow.heads()),
        "window attention, two consumers": Case(
            stdlib.window_attention.with_schedule(Schedule(block=(128, 64))), [*heads, 100]
        ),
        "gemm, two consumers": Case(gemm_block(stdlib.gemm), [square] * 3, knows=True),
        "gemm in clusters": Case(gemm_block(stdlib.gemm, 128, 256, 64, size=8192), [new(8192, 8192)] * 3),
        "gemm of fp8": Case(gemm_block(warp_specialized.plain_narrow_gemm), [bytes_, bytes_, square]),
        "gemm of fp8, rows along k": Case(gemm_block(warp_specialized.narrow_gemm), [bytes_, bytes_, square]),
        "gemm with a residual": Case(gemm_block(warp_specialized.residual_gemm), [square] * 4),
        "gemm with bias and gelu": Case(
            gemm_block(library.gemm), [square, square, new(4096), square], {"epilogue": stdlib.gelu}
        ),
        "dequantised gemm": Case(
            gemm_block(dequantised, 64, 128, 128), [square, Arrays(i8)(4096, 4096), new(4096, 32), square]
        ),
        "portable gemm": Case(gemm_block(stdlib.gemm), [square] * 3, options={"stages": 3, "warps": 8}),
        "sums in f16": Case(rows(summed_in_f16), [Arrays(f16)(256, 1024)]),
        "maxima of multiples": Case(rows(softmax_of_multiples), [new(256, 1024)]),
        "sums in order": Case(
            rows(column_sums, 16), [new(256, 1024), new(1024, dtype=f32)], options={"deterministic": True}
        ),
        "row times matrix": Case(
            row_times_matrix.with_schedule(Schedule(block=(1, 64, 64)))[64], [new(1, 4096), square, new(1, 4096)]
        ),
        "checks": Case(rows(stdlib.softmax), [new(256, 1024)], options={"checks": ("bounds",)}),
        "checks of parts": Case(second_of[16], [new(256, 1024), new(1024)], options={"checks": ("bounds",)}),
        "prints": Case(rows(printing.halves), [new(256, 1024)]),
        "many rows": Case(rows(stdlib.softmax, 64), [new(256, 4096)]),
        "products side by side": Case(
            products[3], [new(6, 64, 64) for _ in range(3)], {"batch": 2, "m": 64, "k": 64, "n": 64}
        ),
        "behind another": Case(
            library.transpose.with_schedule(Schedule(block=(64, 64)))[4, 4],
            [new(256, 256), new(256, 256)],
            options={"follows": True},
        ),
        "one block of columns": Case(
            library.logsumexp.with_schedule(Schedule(block=(16, 256))), [new(256, 256)], knows=True
        ),
    }


def compile_to(folder: Path, arch: str, case: Case) -> None:
    """Compiles a case with all stages dumped."""
    made = case.kernel.lower(*case.given, **case.static)
    outputs = range(len(made.paths), len(made.paths) + len(made.outputs))
    row_aligned = [place for place, lies in lines_of(case.given).items() if lies] + list(outputs)
    facts = observe({f"arg{index}": one for index, one in enumerate(case.given)}) if case.knows else Facts()
    with knobs.dump_dir.using(folder):
        compile_kernel(made.module, made.name, gpu(arch, row_aligned=row_aligned, **case.options), facts)


def changes(folder: Path) -> dict[str, bool]:
    """The stages that were run, and whether each changed any of the texts that are dumped under a folder."""
    found: dict[str, bool] = {}
    texts = {path: _LOCATION.sub("", path.read_text(encoding="utf-8")) for path in folder.rglob("*.mlir")}
    for path, text in texts.items():
        number, _, name = path.stem.partition("-")
        if int(number):
            found[name] = found.get(name, False) or text != texts[_before(path, int(number))]
    return found


def _before(path: Path, number: int) -> Path:
    """The dump of the stage before: an attempt's first stage follows the last one in the folder around it."""
    return next(one for folder in path.parents for one in folder.glob(f"{number - 1:02d}-*.mlir"))


@pytest.mark.acceptance
def test_each_stage_changes_some_kernel(tmp_path: Path) -> None:
    cases = {name: Case(*make(Arrays(bf16))) for name, make in CASES.items()} | extra_cases()
    found: dict[str, bool] = {}
    for number, case in enumerate(cases.values()):
        for arch in ARCHITECTURES:
            folder = tmp_path / f"{number}-{arch}"
            compile_to(folder, arch, case)
            for name, changed in changes(folder).items():
                found[name] = found.get(name, False) or changed
    assert sorted(name for name, changed in found.items() if not changed) == []
    # All passes of GPUs are among them.
    assert set(PASSES) - set(found) == set()
