"""Walks through emitted code count what a machine does that runs it with its data: sectors, requests, turns."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from ptx_machine import Launch, Machine, Memory
from ptx_rules import RULES

import tessera as ts
from tessera import Schedule, kernel, tile
from tessera.metatracing import AccessType, GPUMemoryPatternTracer, KernelExecution
from tessera.metatracing.events import execution as executions
from tessera.stdlib import gemm, layernorm, softmax


def touched(addresses: list[int], size: int, unit: int) -> set[int]:
    """The units that some lanes touch, byte by byte."""
    return {(address + byte) // unit for address in addresses for byte in range(size)}


@kernel.schedule(Schedule(block=(32, 32)))
def transpose(x: Any, y: Any):
    here = tile.context()
    row, col = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    tile.store(y, tile.transpose(tile.load(x, at=(row, col), shape=(here.m, here.n))), at=(col, row))


def seen_by_the_machine(found: KernelExecution, arrays: list[Any], monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Global sectors and requests, and turns of shared memory, of all blocks."""
    counts: Counter[str] = Counter()
    running: list[Machine] = []
    places = Memory.places

    def noting(memory: Memory, addresses: Any, size: int, what: str) -> Any:
        if what.startswith("global"):
            machine = running[-1]
            lanes = np.flatnonzero(machine.mask)
            if "copied" in what and len(copies[-1].operands) > 3:  # those that copy nothing do not access it
                lanes = lanes[machine.get(copies[-1].operands[3], "u32")[machine.mask] > 0]
            kind = "stores" if "written" in what else "loads"
            for warp in np.unique(lanes // 32):
                mine = addresses[lanes // 32 == warp].tolist()
                counts[f"{kind}: sectors"] += len(touched(mine, size, 32))
                counts[f"{kind}: requests"] += 1
        return places(memory, addresses, size, what)

    run = Machine.run

    def running_one(machine: Machine, most: int = 2_000_000) -> None:
        running.append(machine)
        run(machine, most)

    copies: list[Any] = []
    copy = RULES["cp"]

    def copying(machine: Machine, op: Any) -> None:
        copies.append(op)
        copy(machine, op)

    monkeypatch.setitem(RULES, "cp", copying)
    monkeypatch.setattr(Memory, "places", noting)
    monkeypatch.setattr(Machine, "run", running_one)
    launch = Launch()
    for one in arrays:
        launch.view(np.array(one.numpy(), order="K"))  # memory of its own, which begins where sectors do
    shapes = found.plan.result_shapes(found.plan.sizes([one.shape for one in arrays]))
    for shape in shapes:
        launch.view(np.zeros(shape, np.float32))
    launch.words += list(found.grid)
    machines = launch.run(
        found.ptx, found.device.threads, found.device.shared, found.plan.block_bytes, range(found.blocks)
    )
    for machine in machines:
        for one in machine.conflicts.values():
            counts["turns"] += one.taken
            counts["least turns"] += one.least
    return counts


def of_the_walk(found: KernelExecution) -> dict[str, int]:
    memory = GPUMemoryPatternTracer().trace_memory_patterns(found)
    assert memory.is_complete
    counts: Counter[str] = Counter()
    for one in memory.global_accesses:
        kind = "loads" if one.access_type is AccessType.GLOBAL_LOAD else "stores"
        counts[f"{kind}: sectors"] += one.sectors or 0
        counts[f"{kind}: requests"] += one.requests
    for one in memory.shared_accesses:
        counts["turns"] += one.wavefronts
        counts["least turns"] += one.wavefronts - one.bank_conflicts
    return {name: count for name, count in counts.items() if count}


CASES = {
    "transpose": lambda: (transpose[3, 2], [ts.randn((70, 50)), ts.zeros((50, 70))]),
    "transpose of columns": lambda: (transpose[2, 3], [ts.randn((70, 50)).T, ts.zeros((70, 50))]),
    "transpose with conflicts": lambda: (
        transpose.with_schedule(Schedule(block=(48, 40), warps=4))[2, 2],
        [ts.randn((90, 80)), ts.zeros((80, 90))],
    ),
    "softmax": lambda: (softmax, [ts.randn((9, 100))]),
    "layernorm": lambda: (layernorm, [ts.randn((5, 72)), ts.randn((72,)), ts.randn((72,))]),
    "gemm": lambda: (
        gemm.with_schedule(Schedule(block=(32, 32, 16), warps=2, stages=2))[2, 2],
        [ts.randn(shape).to(ts.bf16) for shape in ((50, 40), (40, 48), (50, 48))],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_walk_counts_what_a_machine_does(name: str, monkeypatch: pytest.MonkeyPatch):
    form, arrays = CASES[name]()
    monkeypatch.setattr(executions, "SAMPLED_BLOCKS", 1000)
    found = KernelExecution.of(form, *arrays)
    assert of_the_walk(found) == seen_by_the_machine(found, arrays, monkeypatch)


def test_conflicts_of_banks_are_those_of_all_lanes(monkeypatch: pytest.MonkeyPatch):
    """Blocks whose rows meet in banks: walk and machine count the same conflicts, and there are some."""
    form, arrays = CASES["transpose with conflicts"]()
    monkeypatch.setattr(executions, "SAMPLED_BLOCKS", 1000)
    found = KernelExecution.of(form, *arrays)
    conflicts = sum(one.bank_conflicts for one in GPUMemoryPatternTracer().trace_memory_patterns(found).bank_conflicts)
    counted = seen_by_the_machine(found, arrays, monkeypatch)
    assert conflicts == counted["turns"] - counted["least turns"] > 500
