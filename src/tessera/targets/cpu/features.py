"""The instruction-set level of the host's processor, and the features that LLVM may use.

A level is what the code generator may rely on. `base` is any x86-64; `avx2` is x86-64-v3; `avx512` is x86-64-v4 and
whatever of bf16, fp16, VNNI and the like this host adds; `amx` is that with tiles. `neon` is any AArch64 and whatever
of atomics, fp16, dot products and the like this host adds. Nothing here imports LLVM.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path

from tessera import knobs
from tessera.device_names import CPU_FAMILIES
from tessera.errors import DeviceError

LEVELS = knobs.CPU_LEVELS  # of each family from the least to the most able
_REGISTER_BITS = {"base": 128, "avx2": 256, "avx512": 512, "amx": 512, "neon": 128}
_PROCESSORS = {"base": "x86-64", "avx2": "x86-64-v3", "avx512": "x86-64-v4", "amx": "x86-64-v4", "neon": "generic"}
# What every processor of a family is, as LLVM says it: for code that is the same at all levels.
LEAST_PROCESSORS = {"x86_64": "x86-64", "aarch64": "generic"}

# What each level asks for beyond the one before it, as the kernel spells it.
_NEEDS: dict[str, set[str]] = {
    "base": set(),
    "avx2": {"cx16", "lahf_lm", "popcnt", "pni", "ssse3", "sse4_1", "sse4_2"}
    | {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"},
    "avx512": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
    "amx": {"amx_tile", "amx_bf16"},
    "neon": set(),
}
# What some hosts have beyond a level's own processor: the kernel's name and LLVM's.
EXTRAS = {
    "avx512": {
        "avx512_bf16": "avx512bf16",
        "avx512_fp16": "avx512fp16",
        "avx512_vnni": "avx512vnni",
        "avx512_bitalg": "avx512bitalg",
        "avx512_vbmi2": "avx512vbmi2",
        "avx512_vpopcntdq": "avx512vpopcntdq",
        "avx512ifma": "avx512ifma",
        "avx512vbmi": "avx512vbmi",
        "avx_vnni": "avxvnni",
        "gfni": "gfni",
    },
    "amx": {
        "amx_tile": "amx-tile",
        "amx_bf16": "amx-bf16",
        "amx_int8": "amx-int8",
        "amx_fp16": "amx-fp16",
        "amx_complex": "amx-complex",
    },
    "neon": {
        "atomics": "lse",
        "asimdrdm": "rdm",
        "asimdhp": "fullfp16",
        "asimddp": "dotprod",
        "asimdfhm": "fp16fml",
        "bf16": "bf16",
        "i8mm": "i8mm",
    },
}

FAMILY_NAMES = {"x86_64": "x86-64", "aarch64": "AArch64"}
"""The families of processors as people write them."""
PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}
"""The number of the system call that opens a counter of events, by the family."""
_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA = 158, 0x1023, 18
TILE_ROWS = 16
"""Rows of the matrix unit's registers, each of which has the size of a cache line."""


def family() -> str:
    """The family of the host's processor, whose levels it has."""
    found = machine()
    if found not in CPU_FAMILIES:
        raise DeviceError(
            f"expected a processor of the families {', '.join(CPU_FAMILIES)}, this one is {found}",
            hint=f"leave {knobs.backend.variable} unset: the interpreter runs kernels",
        )
    return found


@cache
def machine() -> str:
    """The system's name for its processor's family."""
    return os.uname().machine


def level() -> str:
    """The level to compile for: the host's, or the lower one that the knob `cpu_level` names."""
    asked = knobs.cpu_level.value
    if asked is None:
        return host_level()
    _expect_on_host(asked)
    return asked


def host_level() -> str:
    """The highest level that this host has."""
    return next(name for name in reversed(CPU_FAMILIES[family()]) if has(name))


@cache
def has(level: str) -> bool:
    """Whether this host has a level.

    Tiles need the system's permission, once per process, before their first instruction. It is asked for here, when the
    question is about tiles; a system that refuses it counts as one without.
    """
    if level not in CPU_FAMILIES.get(machine(), ()):
        return False
    needed = set[str]().union(*(_NEEDS[name] for name in up_to(level)))
    return needed <= host_flags() and (level != "amx" or _permit_tiles())


def target(level: str) -> tuple[str, str]:
    """The processor and the features, as LLVM's target machine takes them; never more than this host has."""
    _expect_on_host(level)
    flags = host_flags()
    features = [f"+{name}" for part in up_to(level) for flag, name in EXTRAS.get(part, {}).items() if flag in flags]
    return _PROCESSORS[level], ",".join(features)


def vector_registers(level: str) -> int:
    """How many vector registers code may use."""
    return 16 if level in ("base", "avx2") else 32


def has_matrix_unit(level: str) -> bool:
    """Whether there are registers of tiles, and products of these."""
    return level == "amx"


def extras(level: str) -> frozenset[str]:
    """What this host has beyond the processors of a level and those below it, as the kernel spells it."""
    return frozenset(flag for part in up_to(level) for flag in EXTRAS.get(part, ())) & host_flags()


def lanes(level: str, bits: int) -> int:
    """How many elements of so many bits fill a vector register."""
    return _REGISTER_BITS[level] // bits


@cache
def host_flags() -> frozenset[str]:
    """The features of the first processor, as the kernel lists them: only those it lets processes use."""
    try:
        with Path("/proc/cpuinfo").open("rb") as file:  # hosts with many processors make it long; the start is enough
            for line in file:
                if line.startswith((b"flags", b"Features")):
                    return frozenset(line.decode().partition(":")[2].split())
    except OSError:
        pass
    return frozenset()


@cache
def caches() -> tuple[int, int]:
    """Bytes of the first cache of data and of the second cache; usual ones where the system does not say."""
    found = {1: 32 << 10, 2: 1 << 20}
    for folder in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        try:
            level, kind, size = ((folder / name).read_text().strip() for name in ("level", "type", "size"))
            if kind != "Instruction" and int(level) in found:
                found[int(level)] = int(size.rstrip("KM")) << (20 if size.endswith("M") else 10)
        except (OSError, ValueError):
            continue
    return found[1], found[2]


def up_to(level: str) -> tuple[str, ...]:
    """A level and those of its family below it."""
    levels = next(levels for levels in CPU_FAMILIES.values() if level in levels)
    return levels[: levels.index(level) + 1]


def _expect_on_host(level: str) -> None:
    if not has(level):
        host = host_level()
        if level not in (ours := CPU_FAMILIES[family()]):
            raise DeviceError(
                f"expected a level of {family()}, which are {', '.join(ours)}, got {level}",
                hint=f"set {knobs.cpu_level.variable} to {host} or lower, or leave it unset",
            )
        missing = sorted(set[str]().union(*(_NEEDS[name] for name in up_to(level))) - host_flags())
        lacks = f"it lacks {', '.join(missing)}" if missing else "the system does not permit tiles"
        raise DeviceError(
            f"expected a level that this host has, at most {host}, got {level}: {lacks}",
            hint=f"set {knobs.cpu_level.variable} to {host} or lower, or leave it unset",
        )


def _permit_tiles() -> bool:
    """The permission is for all threads, and children inherit it."""
    try:
        system_call = ctypes.CDLL(None).syscall
    except (OSError, AttributeError):
        return False
    system_call.restype = ctypes.c_long
    numbers = (ctypes.c_long(number) for number in (_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA))
    return system_call(*numbers) == 0
