"""The PTX of kernels in the tile DSL: as it would be compiled, without a GPU; and of the program that runs on one."""

from __future__ import annotations

from functools import cache
from typing import Any

from tessera import knobs
from tessera.bench.results.definitions import BenchError
from tessera.runtime.cuda.executable import CudaExecutable
from tessera.tile.calls.function import Kernel
from tessera.tile.calls.guarded_kernel import GuardedKernel
from tessera.tile.calls.settings import Settings, settings

ARCHITECTURE = "sm_90a"


def text_for(kernel: Kernel, *args: Any, arch: str = ARCHITECTURE, **kwargs: Any) -> str:
    """The PTX for arguments like these, tensors of the host: `tessera.empty` makes some that take no memory."""
    chosen = _settings(arch, knobs.optimization.value, knobs.checks.value, knobs.deterministic.value)
    return _executable(kernel.program_for(args, kwargs, chosen)[0]).ptx.decode()


@cache
def _settings(arch: str, optimization: int, checks: frozenset[str], deterministic: bool) -> Settings:
    """Equal ones are one object: a kernel compiles a text once."""
    return Settings("cuda", arch, optimization, checks, deterministic, True)


def program_of(kernel: Kernel, *args: Any, **kwargs: Any) -> CudaExecutable:
    """The executable that a call with these arguments, tensors of a GPU, runs; it has its `ptx`."""
    chosen = settings()
    if chosen is None:
        raise BenchError(f"{kernel.__name__} runs in the interpreter", hint="unset TESSERA_INTERPRET and its like")
    return _executable(kernel.program_for(args, kwargs, chosen)[0])


def _executable(program: GuardedKernel) -> CudaExecutable:
    if not isinstance(program.executable, CudaExecutable):
        raise BenchError("the program has no code for GPUs", hint="give tensors of a GPU")
    return program.executable
