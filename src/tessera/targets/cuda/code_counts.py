"""Counts of kernels for GPUs: from their PTX, from ptxas where there is one, else from the estimate."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from tessera.compiler.code_counts import CodeCounts
from tessera.compiler.launch_plan import DeviceLaunch
from tessera.errors import CompileError
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.lower.budget import REGISTERS, Budget, estimate
from tessera.targets.cuda.ptx import counting
from tessera.targets.cuda.ptx.assembler import Usage, assemble
from tessera.targets.cuda.ptx.reading import read
from tessera.targets.cuda.ptx.tools import find_ptxas

_ENTRY = re.compile(r"\.entry\s+([\w$]+)")
_TARGET = re.compile(r"^\s*\.target\s+(\w+)", re.MULTILINE)
_MODULE = re.compile(r"^(?=\s*\.version\b)", re.MULTILINE)
_SHARED = re.compile(r"\.shared\s+\.align\s+\d+\s+\.b8\s+[\w$]+\[(\d+)\]")
_NO_PTXAS = "there is no ptxas here: only it knows what becomes of registers; the wheel nvidia-cuda-nvcc has it"
_NO_LAUNCH = "the launch is not in the text: give the target IR"
_NO_REGISTERS = f"it follows from registers, and {_NO_PTXAS}"


class Multiprocessor(NamedTuple):
    """The resources that thread blocks share on one multiprocessor of an architecture."""

    shared: int
    threads: int
    blocks: int
    registers: int = 65536


MULTIPROCESSORS: Mapping[str, Multiprocessor] = {
    "sm_80": Multiprocessor(164 << 10, 2048, 32),
    "sm_89": Multiprocessor(100 << 10, 1536, 24),
    "sm_90": Multiprocessor(228 << 10, 2048, 32),
    "sm_90a": Multiprocessor(228 << 10, 2048, 32),
}
WARP, WARP_REGISTERS, SHARED_UNIT, SHARED_OF_SYSTEM, SCHEDULERS = 32, 256, 128, 1024, 4
"""Threads of a warp; units of registers for warps and of shared memory for blocks; what a block has besides; the parts
of a multiprocessor, each of which has its share of the registers."""


def counts_of_text(ptx: str) -> Mapping[str, CodeCounts] | None:
    """The counts of all kernels of a text of one module or several; None where it is no PTX."""
    modules = [one for one in _MODULE.split(ptx) if _ENTRY.search(one)]
    if not modules:
        return None
    return {name: counts_of(one, None, None) for one in modules if (name := _name_of(one)) is not None}


def counts_of(ptx: str, function: nv.FuncOp | None, launch: DeviceLaunch | None) -> CodeCounts:
    """The counts of one kernel."""
    code, name, arch = read(ptx).instructions, _name_of(ptx), _TARGET.search(ptx)
    used = None if arch is None or name is None else usage_of(ptx, name, arch[1])
    foreseen = None if function is None else estimate(function)
    registers = _registers(used, foreseen)
    shared = None if launch is None else launch.shared + _static_shared(ptx)
    mix, accesses, unavailable = counting.mix(code), counting.memory_accesses(code), dict[str, str]()
    occupancy = None
    if registers is None:
        unavailable |= {"registers": _NO_PTXAS, "register_pressure": _NO_PTXAS, "occupancy_estimate": _NO_REGISTERS}
    elif launch is None or shared is None or arch is None:
        unavailable["occupancy_estimate"] = _NO_LAUNCH
    else:
        occupancy = occupancy_of(arch[1], registers["per_thread"], launch.threads, shared)
    if shared is None:
        unavailable["shared_memory_usage.shared_bytes"] = _NO_LAUNCH
    pressure = None if registers is None else _pressure(registers, used, foreseen, unavailable)
    return CodeCounts(
        instruction_count=len(code),
        instruction_mix=mix,
        memory_access_patterns=accesses,
        registers=registers,
        functions={} if name is None else {name: len(code)},
        occupancy_estimate=occupancy,
        shared_memory_usage={"shared_bytes": shared},
        register_pressure=pressure,
        tensor_core_utilization={
            "matrix_instructions": mix.get("matrix", 0),
            "matrix_loads": mix.get("matrix_load", 0),
            "matrix_waits": mix.get("matrix_wait", 0),
        },
        async_copy_patterns={
            "async_copies": accesses.get("async_copies", 0),
            "bulk_copies": accesses.get("bulk_copies", 0),
            "copy_waits": mix.get("copy_wait", 0),
        },
        synchronization_overhead={
            "barriers": mix.get("barrier", 0),
            "by_name": counting.barriers(code),
            "atomic_instructions": mix.get("atomic", 0),
        },
        unavailable=unavailable,
    )


def usage_of(ptx: str, name: str, arch: str) -> Usage | None:
    """What ptxas finds a kernel to use; None where there is no ptxas, or one that does not know the architecture."""
    if find_ptxas() is None:
        return None
    try:
        return assemble(ptx, arch).kernels.get(name)
    except CompileError:
        return None


def occupancy_of(arch: str, registers: int, threads: int, shared: int) -> dict[str, Any]:
    """How many blocks a multiprocessor of an architecture holds at once, and what it is that keeps it from more."""
    has, warps = MULTIPROCESSORS[arch], -(-threads // WARP)
    of_warp = -(-max(registers, 1) * WARP // WARP_REGISTERS) * WARP_REGISTERS
    most_warps = has.registers // SCHEDULERS // of_warp * SCHEDULERS
    of_block = -(-shared // SHARED_UNIT) * SHARED_UNIT + SHARED_OF_SYSTEM
    limits = {
        "registers": most_warps // warps,
        "shared memory": has.shared // of_block,
        "threads": has.threads // (WARP * warps),
        "blocks": has.blocks,
    }
    limit = min(limits, key=lambda one: limits[one])
    blocks = limits[limit]
    return {
        "blocks_per_multiprocessor": blocks,
        "occupancy_percent": 100 * blocks * threads / has.threads,
        "limited_by": limit,
    }


def _registers(used: Usage | None, foreseen: Budget | None) -> dict[str, Any] | None:
    if used is not None:
        return {"per_thread": used.registers, "source": "ptxas"}
    return None if foreseen is None else {"per_thread": foreseen.registers, "source": "estimate"}


def _pressure(
    registers: Mapping[str, Any], used: Usage | None, foreseen: Budget | None, unavailable: dict[str, str]
) -> dict[str, Any]:
    if used is None:
        unavailable |= dict.fromkeys(
            ("register_pressure.spill_stores", "register_pressure.spill_loads", "register_pressure.stack"), _NO_PTXAS
        )
    if foreseen is None:
        unavailable["register_pressure.estimate"] = "estimates are made from the nv level: give the target IR"
    return {
        **registers,
        "registers_there_are": REGISTERS,
        "estimate": None if foreseen is None else foreseen.registers,
        "spill_stores": None if used is None else used.spill_stores,
        "spill_loads": None if used is None else used.spill_loads,
        "stack": None if used is None else used.stack,
    }


def _static_shared(ptx: str) -> int:
    return sum(map(int, _SHARED.findall(ptx)))


def _name_of(ptx: str) -> str | None:
    found = _ENTRY.search(ptx)
    return None if found is None else found[1]
