"""The library's kernels for GPUs, without one: PTX that assembles clean and has the instructions that are meant."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import pytest
from gpu_options import gpu
from ptx_checks import count, instructions

import tessera as ts
from tessera import DType, Schedule, bf16, f16, f32, i32
from tessera.targets.cuda.compile import FEW_SPILLS, CompiledPtx, compile_kernel
from tessera.targets.cuda.ptx.assembler import Assembly, assemble
from tessera.targets.cuda.target import architecture_of
from tessera.tile.calls.function import Kernel
from tessera.tile.calls.program_cache import lines_of

lib: Any = import_module("library")

DTYPES = [f32, bf16, f16]
Call = tuple[Any, list[Any], dict[str, Any]]


class Arrays(NamedTuple):
    """Makes arrays of one element type, whose rows lie well; they take no memory."""

    dtype: DType

    def __call__(self, *shape: int, dtype: DType | None = None) -> ts.Tensor:
        return ts.empty(shape, dtype or self.dtype)

    def heads(self) -> list[ts.Tensor]:
        return [self(2, 256, 64) for _ in range(3)]


def rows(kernel: Any, size: int = 4) -> Any:
    return kernel.with_schedule(Schedule(block=(size,)))


def blocks(kernel: Any, new: Arrays) -> Any:
    """Blocks of queries by keys, or what plays their part. Products of f32 take three times the registers."""
    return kernel.with_schedule(Schedule(block=(64, 32) if new.dtype is f32 else (64, 64)))


# For each kernel, its arguments and static ones.
CASES: dict[str, Callable[[Arrays], Call]] = {
    "saxpy": lambda new: (rows(lib.saxpy, 1024), [new(4096), new(4096), 1.5], {}),
    "softmax": lambda new: (rows(lib.softmax), [new(256, 1024)], {}),
    "layernorm": lambda new: (rows(lib.layernorm), [new(2, 256, 1024), new(1024), new(1024)], {}),
    "rmsnorm": lambda new: (rows(lib.rmsnorm), [new(256, 1024), new(1024), 1e-6], {}),
    "gemm": lambda new: (
        lib.gemm.with_schedule(Schedule(block=(64, 64, 32)))[4, 4],
        [new(256, 256), new(256, 256), new(256), new(256, 256)],
        {"epilogue": lib.gelu},
    ),
    "transpose": lambda new: (
        lib.transpose.with_schedule(Schedule(block=(64, 64)))[4, 4],
        [new(256, 256), new(256, 256)],
        {},
    ),
    "attention": lambda new: (
        blocks(lib.attention, new),
        [new(1, 2, 256, 64), new(1, 1, 256, 64), new(1, 1, 256, 64)],
        {},
    ),
    "causal_attention": lambda new: (blocks(lib.attention, new), new.heads(), {"mask": lib.causal}),
    "window_attention": lambda new: (blocks(lib.window_attention, new), [*new.heads(), 100], {}),
    "softcap_attention": lambda new: (blocks(lib.softcap_attention, new), new.heads(), {"cap": 5.0}),
    "alibi_attention": lambda new: (blocks(lib.alibi_attention, new), [*new.heads(), new(2, dtype=f32)], {}),
    "sigmoid_attention": lambda new: (blocks(lib.sigmoid_attention, new), [*new.heads(), -1.0], {}),
    "mlp": lambda new: (blocks(lib.mlp, new), [new(256, 64), new(64, 256), new(256, 64)], {}),
    "histogram": lambda new: (rows(lib.histogram, 128), [new(4096, dtype=i32), new(16, dtype=i32)], {"bins": 16}),
    "logsumexp": lambda new: (lib.logsumexp.with_schedule(Schedule(block=(16, 256))), [new(256, 1024)], {}),
    "rope": lambda new: (rows(lib.rope, 16), [new(2, 256, 128), new(2, 256, 128)], {}),
}
PRODUCTS = {name for name in CASES if name.endswith("attention")} | {"gemm", "mlp"}
ROWWISE = {"softmax", "layernorm", "rmsnorm", "logsumexp", "histogram"}
# Of rows that several threads of a warp hold.
REDUCTIONS = ROWWISE | (PRODUCTS - {"gemm", "mlp", "sigmoid_attention"})
# All that they read and write is whole rows of pieces.
IN_PIECES = {"saxpy", "softmax", "layernorm", "rmsnorm", "transpose", "rope"}


def test_every_kernel_has_a_case() -> None:
    library = {name for name in dir(lib) if isinstance(getattr(lib, name), Kernel)}
    assert library | {"causal_attention"} == CASES.keys()


PORTABLE = 1
"""The first rung without agents."""


def compiled(
    name: str,
    dtype: DType,
    arch: str = "sm_90a",
    *,
    checks: tuple[str, ...] = (),
    lie: bool = True,
    spill_retry: int = 0,
) -> CompiledPtx:
    """A kernel as a call compiles it; with `lie` false, for arrays of which nothing is known."""
    kernel, given, static = CASES[name](Arrays(dtype))
    made = kernel.lower(*given, **static)
    results = range(len(made.paths), len(made.paths) + len(made.outputs))
    row_aligned = [place for place, lies in lines_of(given).items() if lies] + list(results)
    return compile_kernel(
        made.module,
        made.name,
        gpu(arch, checks=checks, row_aligned=row_aligned if lie else ()),
        spill_retry=spill_retry,
    )


@cache
def program(name: str, dtype: DType, spill_retry: int = 0) -> CompiledPtx:
    return compiled(name, dtype, spill_retry=spill_retry)


def assembled(made: CompiledPtx, arch: str = "sm_90a") -> Assembly:
    """The machine code of a program, which keeps what it says of itself."""
    found = assemble(made.ptx, arch)
    (usage,) = found.kernels.values()
    assert list(found.kernels) == [made.name]
    assert usage.stack <= made.local, f"{usage}: {made.local} bytes of local memory were foreseen"
    assert not [str(remark) for remark in found.warnings if remark.slows]
    # Shared memory is asked for at the launch, all of it.
    assert usage.shared == 0
    return found


EACH = [
    *((name, dtype, 0) for name in CASES for dtype in (DTYPES if name != "histogram" else [f32])),
    *((name, dtype, PORTABLE) for name in sorted(PRODUCTS) for dtype in (bf16, f16)),
]


def has_agents(name: str, dtype: DType, spill_retry: int) -> bool:
    """Products of 16 bits are given to agents, unless they did not fit."""
    return name in PRODUCTS and dtype is not f32 and spill_retry < PORTABLE


@pytest.mark.quick(9)(
    name=[name for name in CASES if name not in ("softcap_attention", "alibi_attention")],
    dtype=[f32, bf16],
    spill_retry=[0],
)
@pytest.mark.parametrize(("name", "dtype", "spill_retry"), EACH, ids=str)
def test_a_kernel_assembles_clean_and_has_the_intended_instructions(name: str, dtype: DType, spill_retry: int) -> None:
    made = program(name, dtype, spill_retry)
    assembled(made)
    assert made.local == (FEW_SPILLS if name in PRODUCTS and not has_agents(name, dtype, spill_retry) else 0)
    assert made.messages == (), "it reports nothing, so that nobody waits for it"
    # No library is there to call, and no array of a thread's own lies in memory.
    for which in ("call", "ld.local", "st.local"):
        assert count(made.ptx, which) == 0
    assert ".extern .func" not in made.ptx
    if has_agents(name, dtype, spill_retry):
        check_agents(name, dtype, made.ptx)
    else:
        check_products(name, dtype, made.ptx)
        check_memory(name, dtype, made.ptx)
    assert (count(made.ptx, "shfl.sync.bfly") > 0) == (name in REDUCTIONS)


def check_products(name: str, dtype: DType, ptx: str) -> None:
    if name not in PRODUCTS:
        assert count(ptx, "mma.sync") == count(ptx, "cp.async") == 0
        return
    kind = "m16n8k8.row.col.f32.tf32.tf32.f32" if dtype is f32 else f"m16n8k16.row.col.f32.{dtype}.{dtype}.f32"
    assert count(ptx, f"mma.sync.aligned.{kind}") == count(ptx, "mma.sync") > 0
    assert count(ptx, "ldmatrix.sync.aligned.m8n8.x4") > 0
    assert count(ptx, "cp.async.cg.shared.global") > 0
    assert count(ptx, "cp.async.wait_group") > 0
    # 16 bytes at a time only: nothing has to be found out when it runs.
    assert count(ptx, "cp.async.ca") == 0


def check_agents(name: str, dtype: DType, ptx: str) -> None:
    assert count(ptx, "wgmma.mma_async.sync.aligned.m64n64k16.f32") == count(ptx, "wgmma.mma_async") > 0
    assert f".f32.{dtype}.{dtype}" in ptx
    assert count(ptx, "mma.sync") == count(ptx, "ldmatrix") == 0
    # Both factors come by copies of the machine's, and results leave by them.
    for which in ("cp.async.bulk.tensor", "mbarrier.try_wait", "stmatrix.sync.aligned", "cp.async.bulk.commit_group"):
        assert count(ptx, which) > 0, which
    # Threads read a bias and slopes, and write what no product has made: zeros, where there are no turns.
    assert (count(ptx, "ld.global") > 0) == (name in ("gemm", "alibi_attention"))
    assert count(ptx, "st.global") <= 16


def check_memory(name: str, dtype: DType, ptx: str) -> None:
    moves = [which for which in instructions(ptx) if which.startswith(("ld.global", "st.global"))]
    if name in IN_PIECES:
        assert {which[:2] for which in moves} == {"ld", "st"}
        assert all(".v4." in which for which in moves), moves
    if name == "histogram":
        assert count(ptx, "atom.global.add.u32") > 0
    if name == "transpose" or (name == "gemm" and dtype is not f32):
        # The tile changes its layout on the way out, through shared memory.
        assert count(ptx, "st.shared") > 0
        assert count(ptx, "ld.shared") > 0


@pytest.mark.parametrize("name", ["softmax", "gemm"])
def test_of_arrays_that_may_lie_anyhow_all_ways_are_there(name: str) -> None:
    made = compiled(name, bf16, lie=False)
    assembled(made)
    assert count(made.ptx, "ld.global.nc.v4.b32" if name == "softmax" else "cp.async.cg") > 0
    assert count(made.ptx, "ld.global.nc.b16" if name == "softmax" else "cp.async.ca") > 0
    assert len(made.ptx) > len(program(name, bf16, PORTABLE).ptx)


# Nobody has seen them run there, but the instructions are there.
UNSEEN = {(8, 0): "sm_80", (8, 6): "sm_86", (8, 9): "sm_89", (10, 0): "sm_100"}


@pytest.mark.quick(2)
@pytest.mark.parametrize("capability", UNSEEN, ids=UNSEEN.get)
@pytest.mark.parametrize(("name", "dtype"), [("gemm", bf16), ("causal_attention", f16), ("layernorm", f32)], ids=str)
def test_other_gpus_have_all_instructions(name: str, dtype: DType, capability: tuple[int, int]) -> None:
    arch = architecture_of(capability)
    made = compiled(name, dtype, arch)
    assert f".target {arch}\n" in made.ptx
    assembled(made, UNSEEN[capability])
    for which in ("mma.sync", "ldmatrix", "cp.async"):
        assert (count(made.ptx, which) > 0) == (name in PRODUCTS)


@pytest.mark.quick(1)
@pytest.mark.parametrize("name", ["softmax", "gemm"])
def test_the_debug_build_names_the_line(name: str) -> None:
    made = compiled(name, bf16, checks=("bounds", "nan"))
    assert list(assemble(made.ptx, "sm_90a").kernels) == [made.name]
    assert all("library.py:" in message for message in made.messages)
    assert any("NaN" in message for message in made.messages)
    assert any("outside" in message for message in made.messages)
    # Whoever fails first says so.
    assert count(made.ptx, "atom.relaxed.sys.global.cas.b64") > 0
