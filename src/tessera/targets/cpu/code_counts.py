"""Counts of kernels for processors: from their assembly, and the buffers of the cpu level."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Operation, SSAValue

from tessera.compiler.code_counts import CodeCounts
from tessera.targets.cpu import instructions
from tessera.targets.cpu.ir import dialect as cpu
from tessera.targets.cpu.ir.types import LINE, buffer_type, panels_type, rounded_up

_REASONS = {
    "occupancy_estimate": "occupancy is about warps that share a multiprocessor; a thread has its registers to itself",
    "shared_memory_usage.shared_bytes": "a processor has none: program instances share data through its caches",
    "async_copy_patterns.async_copies": "a processor has no asynchronous copies: it reads ahead by itself",
    "synchronization_overhead.barriers": "program instances do not wait for each other: there is no such op",
}
_DIRECTIVE = re.compile(r"^\s*\.(?:text|globl)\b", re.MULTILINE)
# Vector registers that a processor of x86-64 has, by the widest vectors of the code; those of AArch64 have 32.
_VECTOR_REGISTERS = {512: 32, 256: 16, 128: 16, 0: 0}
_ARM_VECTOR_REGISTERS = 32
_STACK = ("stack_vector_loads", "stack_vector_stores", "stack_scalar_loads", "stack_scalar_stores")


def counts_of_text(assembly: str) -> Mapping[str, CodeCounts] | None:
    """The counts of all kernels of a text; None where it is no assembly of processors."""
    if _DIRECTIVE.search(assembly) is None:
        return None
    found = instructions.functions_of(assembly)
    return {name: _counted(found, name) for name in found if "." not in name}


def counts_of(assembly: str, name: str, module: ModuleOp | None) -> CodeCounts:
    """The counts of a kernel; the function that computes a thread's scratch memory is counted in `functions` only."""
    counted = _counted(instructions.functions_of(assembly), name)
    if module is None:
        return counted
    memory = {"shared_bytes": None, "workspace_bytes": _workspace(module), "panels": _panels(module)}
    assert counted.tensor_core_utilization is not None
    units = {
        "matrix_ops": _count(module, cpu.MatmulOp),
        "vector_dots": _count(module, cpu.DotOp),
        **counted.tensor_core_utilization,
    }
    return replace(counted, shared_memory_usage=memory, tensor_core_utilization=units)


def _counted(functions: Mapping[str, list[instructions.Instruction]], name: str) -> CodeCounts:
    body = functions.get(name, [])
    mix = instructions.mix(body)
    own = {one: len(lines) for one, lines in functions.items() if one.partition(".")[0] == name}
    return CodeCounts(
        instruction_count=len(body),
        instruction_mix=mix,
        memory_access_patterns=instructions.memory_accesses(body),
        registers=instructions.registers(body),
        functions=own,
        register_pressure=_pressure(body),
        tensor_core_utilization={"matrix_instructions": sum(one.name.startswith("tdp") for one in body)},
        async_copy_patterns={"async_copies": None},
        synchronization_overhead={"barriers": None, "locked_instructions": mix.get("atomic", 0)},
        unavailable=_REASONS,
    )


def _pressure(body: list[instructions.Instruction]) -> dict[str, Any]:
    """Registers that appear, of those there are, and what goes over the stack instead."""
    used, accesses = instructions.registers(body), instructions.memory_accesses(body)
    arm = any(one.arm for one in body)
    return {
        **used,
        "vector_registers_there_are": _ARM_VECTOR_REGISTERS if arm else _VECTOR_REGISTERS[used["vector_bits"]],
        **{name: accesses.get(name, 0) for name in _STACK},
    }


def _workspace(module: ModuleOp) -> int:
    """Bytes of a thread's buffers, each rounded up as the emitter does; panels come on top."""
    sizes = [buffer_type(op.result).size for op in module.walk() if isinstance(op, cpu.BufferOp)]
    return sum(rounded_up(size + LINE, LINE) for size in sizes)


def _panels(module: ModuleOp) -> list[dict[str, Any]]:
    """Packed operands of dots: bytes of one, and how many a thread keeps, None where that depends on sizes."""
    reserved = [op for op in module.walk() if isinstance(op, cpu.ReserveOp)]
    return [{"bytes": panels_type(op.result).size, "count": _constant(op.count)} for op in reserved]


def _constant(value: SSAValue) -> int | None:
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return owner.value.value.data
    return None


def _count(module: ModuleOp, kind: type[Operation]) -> int:
    return sum(isinstance(op, kind) for op in module.walk())
