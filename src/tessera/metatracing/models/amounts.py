"""Amounts of work that running times are fitted to, for a kernel under a schedule on a machine; and families of programs.

All are those of the part of a machine that has most to do: a multiprocessor, or a thread of the CPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tessera.metatracing.events.tile_work import TileWork

AGENT_ROWS, MOST_AGENTS = 64, 4


@dataclass(frozen=True)
class Machine:
    """What programs run on: `cuda` or `cpu`, and how many of them at once."""

    kind: str
    units: int
    name: str = ""


H200 = Machine("cuda", 132, "h200")


@dataclass(frozen=True)
class Program:
    """A kernel's program as models see it: its work, and how it is cut up."""

    work: TileWork
    rows: int
    """Of a block."""
    warps: int | None = None
    assumed: bool = False

    def by_agents(self, machine: Machine) -> bool:
        """Whether warpgroups multiply, and tensor maps copy: on sm_90a, for 16 bits, rows that lie well, whole agents."""
        agents = self.rows // AGENT_ROWS
        return (
            machine.kind == "cuda"
            and self.work.total("products") > 0
            and self.work.bits <= 16
            and self.rows % AGENT_ROWS == 0
            and 1 <= agents <= MOST_AGENTS
            and not self.work.far_arguments
            and self.warps in (None, 4 * agents)
        )

    def family(self, machine: Machine) -> str:
        """Programs of one family have the same coefficients."""
        if not self.work.total("products"):
            return f"{machine.kind} rows"
        if machine.kind != "cuda":
            return f"cpu products of {self.work.bits} bits"
        if self.by_agents(machine):
            return "cuda agents"
        return "cuda products" if self.work.bits <= 16 else "cuda products of 32 bits"

    def amounts(self, machine: Machine) -> dict[str, float]:
        """By name; `always` is the launch."""
        work, units = self.work, machine.units
        tiny = 1e-12
        programs = work.programs
        threads = 32.0 * (self.warps or 4)
        share = -(-programs // units) if units else programs
        return {
            "always": 1.0,
            "programs": float(share),
            "turns": work.busiest("turns", units) + tiny,
            "products": work.busiest("products", units) + tiny,
            "functions": work.busiest("functions", units) + tiny,
            "elements": work.busiest("elements", units) + tiny,
            "lanes": work.busiest("elements", units) / threads + tiny,
            "near": work.busiest("near", units) + tiny,
            "far": work.busiest("far", units) + tiny,
            "dots": work.busiest("dots", units) + tiny,
            "footprint": float(work.footprint),
        }


START: Mapping[str, Mapping[str, float]] = {
    "cuda agents": {
        "always": 3e-6,
        "programs": 1e-6,
        "turns": 2e-7,
        "products": 2e-13,
        "functions": 3e-11,
        "footprint": 3e-13,
    },
    "cuda products": {
        "always": 3e-6,
        "programs": 1e-6,
        "turns": 2e-7,
        "products": 4e-13,
        "functions": 3e-11,
        "far": 1e-11,
        "footprint": 3e-13,
    },
    "cuda products of 32 bits": {
        "always": 3e-6,
        "programs": 1e-6,
        "turns": 2e-7,
        "products": 2e-12,
        "functions": 3e-11,
        "far": 1e-11,
        "footprint": 3e-13,
    },
    "cuda rows": {"always": 3e-6, "programs": 1e-7, "lanes": 1e-9, "far": 1e-11, "footprint": 3e-13},
    "cpu products of 32 bits": {
        "always": 3e-6,
        "programs": 1e-7,
        "dots": 1e-7,
        "products": 2e-11,
        "functions": 1e-9,
        "elements": 2e-10,
        "near": 1e-11,
        "far": 1e-10,
    },
    "cpu products of 16 bits": {
        "always": 3e-6,
        "programs": 1e-7,
        "dots": 1e-7,
        "products": 5e-11,
        "functions": 1e-9,
        "elements": 2e-10,
        "near": 5e-11,
        "far": 1e-10,
    },
    "cpu rows": {"always": 3e-6, "programs": 1e-7, "functions": 1e-9, "elements": 2e-10, "near": 1e-11, "far": 1e-10},
}
"""The amounts that count for each family, and about how many seconds each of them takes."""
