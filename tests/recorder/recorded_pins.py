"""What the recorder compiles for, and how a process is made to be no particular machine.

Code for processors is recorded as assembly, since LLVM assembles inline assembly for its own host only; so any machine
records all targets. Caches, features and threads are those of a usual processor of each family.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any
from unittest.mock import patch

from tessera.compiler.launch_plan import Plan
from tessera.device_names import CPU_FAMILIES
from tessera.targets.cpu import features
from tessera.targets.llvm import image, machine
from tessera.tile.calls import compiling, guarded_kernel
from tessera.tile.calls.settings import Settings

ENVIRONMENT: Mapping[str, str] = {
    "TESSERA_NUM_THREADS": "4",
    "OPENBLAS_NUM_THREADS": "1",
    "CUDA_VISIBLE_DEVICES": "",  # a GPU would be asked how much local memory a program takes
    "TESSERA_DETERMINISTIC": "1",
    "TESSERA_OPTIMIZATION": "3",
}
FLAGS = {
    "x86_64": frozenset(
        [
            "cx16",
            "lahf_lm",
            "popcnt",
            "pni",
            "ssse3",
            "sse4_1",
            "sse4_2",
            "avx",
            "avx2",
            "bmi1",
            "bmi2",
            "f16c",
            "fma",
            "abm",
            "movbe",
            "xsave",
            "avx512f",
            "avx512bw",
            "avx512cd",
            "avx512dq",
            "avx512vl",
            "avx512_bf16",
            "avx512_fp16",
            "avx512_vnni",
            "amx_tile",
            "amx_bf16",
            "amx_int8",
        ]
    ),
    "aarch64": frozenset(["atomics", "asimdrdm", "asimdhp", "asimddp"]),
}
CACHES = (48 << 10, 2 << 20)


@dataclass(frozen=True)
class Target:
    """A machine that code is recorded for."""

    kind: str
    level: str
    optimization: int = 3
    checks: tuple[str, ...] = ()

    def __str__(self) -> str:
        work = "" if self.optimization == 3 else f" O{self.optimization}"
        return f"{self.level}{work}{''.join(f' +{check}' for check in self.checks)}"

    @property
    def family(self) -> str:
        """Of the processor; programs for GPUs are launched by any."""
        return next((family for family, levels in CPU_FAMILIES.items() if self.level in levels), "x86_64")


CPUS = tuple(Target("cpu", level) for level in ("avx2", "avx512", "amx", "neon"))
GPUS = (Target("cuda", "sm_90a"), Target("cuda", "sm_80"))
TARGETS = (*CPUS, *GPUS)
OTHERS = (
    Target("cpu", "avx512", 0),
    Target("cpu", "neon", 0),
    Target("cpu", "avx2", 1),
    Target("cuda", "sm_90a", 0),
    Target("cuda", "sm_80", 1),
    Target("cpu", "avx512", 3, ("bounds", "nan")),
    Target("cuda", "sm_90a", 3, ("bounds", "nan")),
)
"""Less work for the compiler, as the first tiers ask for; and code that checks itself."""


@dataclass
class Recorded:
    """A program that is not loaded: this machine may be another."""

    plan: Plan
    code: bytes
    target: str = "cpu"

    @property
    def nbytes(self) -> int:
        return len(self.code)


@cache
def settings_of(target: Target) -> Settings:
    """Equal ones are one object, as programs are kept by it."""
    return Settings(target.kind, target.level, target.optimization, frozenset(target.checks), True, True)


@contextmanager
def compiling_for(target: Target) -> Generator[Settings]:
    """Programs that are compiled inside are for a machine of the target, as text, and are not loaded."""
    triple = f'target triple = "{target.family}-unknown-linux-gnu"\n'

    def as_assembly(text: str, **options: Any) -> bytes:
        return machine.assembly(triple + text, **options).encode()

    def is_there(level: str) -> bool:
        return level in CPU_FAMILIES[target.family]

    with ExitStack() as stack:
        # By the functions themselves: a symbol that is renamed is renamed here, too.
        for owner, function, instead in (
            (features, features.machine, lambda: target.family),
            (features, features.has, is_there),
            (features, features.host_flags, lambda: FLAGS[target.family]),
            (features, features.caches, lambda: CACHES),
            (machine, machine.compile_text, as_assembly),
            (image, image.flatten, bytes),
            (guarded_kernel, guarded_kernel.loaded, Recorded),
            (compiling, compiling.loaded, Recorded),
        ):
            stack.enter_context(patch.object(owner, function.__name__, instead))
        yield settings_of(target)


def environment(cache_folder: str) -> dict[str, str]:
    """The environment of a process that records: nothing that a user's settings could change."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TESSERA_")}
    return {**kept, **ENVIRONMENT, "TESSERA_CACHE_DIR": cache_folder}
