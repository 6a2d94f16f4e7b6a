"""Features of programs that running times are fitted to: amounts of work under a schedule on a machine; families.

All are those of the part of a machine that has most to do: a multiprocessor, or a thread of the CPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tessera.device_names import is_accelerator
from tessera.targets.cuda.lower.multiprocessor_model import OWN_REGISTERS, REGISTERS
from tessera.targets.cuda.lower.multiprocessor_model import ROWS as WARP_GROUP_ROWS

if TYPE_CHECKING:
    from tessera.metatracing.events.tile_work import TileWork


@dataclass(frozen=True)
class Machine:
    """The machine that programs run on: `cuda` or `cpu`, and its number of multiprocessors or threads."""

    kind: str
    units: int
    name: str = ""

    @property
    def is_gpu(self) -> bool:
        """Whether its units are multiprocessors, which program instances are spread over."""
        return is_accelerator(self.kind)


H200 = Machine("cuda", 132, "h200")


@dataclass(frozen=True)
class ModelledProgram:
    """A kernel's program as models see it: its work, and how it is cut up."""

    work: TileWork
    rows: int
    """The rows of a block."""
    warps: int | None = None
    assumed: bool = False

    def is_warp_specialized(self, machine: Machine) -> bool:
        """Whether it is warp-specialized: on sm_90a, for 16 bits, with aligned rows and whole warp groups of them.

        The accumulators of a thread have to fit the registers that are left to it by so many warp groups.
        """
        groups, work = self.rows // WARP_GROUP_ROWS, self.work
        if not machine.is_gpu or self.rows % WARP_GROUP_ROWS or groups not in REGISTERS or not work.columns:
            return False
        held = OWN_REGISTERS + (work.columns + work.made * work.bits / 32) / 2
        lies = work.bits <= 16 and not work.far_arguments
        return lies and self.warps in (None, 4 * groups) and held <= REGISTERS[groups]

    def family(self, machine: Machine) -> str:
        """Programs of one family have the same coefficients."""
        if not self.work.columns:
            return f"{machine.kind} rows"
        # Work between dots, softmax say, takes time beside them.
        between = FUNCTIONS if self.work.total("functions") > 0 else ""
        if not machine.is_gpu:
            return f"cpu products of {self.work.bits} bits{between}"
        if self.is_warp_specialized(machine):
            return f"cuda warp groups{between}"
        return f"cuda products{between}" if self.work.bits <= 16 else f"cuda products of 32 bits{between}"

    @property
    def threads(self) -> int:
        """The threads of a block of a GPU, for programs that are not warp-specialized."""
        if self.warps is not None:
            return 32 * self.warps
        return 256 if self.rows * self.work.columns > 128 * MOST_SUMS else 128

    def amounts(self, machine: Machine) -> dict[str, float]:
        """The amounts by name; `always` is the launch. Zero amounts are tiny instead, so that logarithms exist."""
        work, units = self.work, machine.units
        if machine.is_gpu and not work.columns:
            # Rows are spread over as many blocks as there is room for.
            busiest = {name: work.total(name) / units for name in COUNTED}
        else:
            busiest = {name: work.busiest(name, units) for name in COUNTED}
        warps = self.threads // 32
        down = min(warps, max(1, self.rows // 16))
        held = self.rows * work.columns / self.threads
        found = {
            **busiest,
            "always": 1.0,
            "programs": -(-work.programs // units),
            "footprint": work.footprint,
            "moved": work.total("near") + work.total("far"),
            # Warps above each other read the same right operands, those beside each other the same left ones.
            "shared": busiest["left"] * (warps // down) + busiest["right"] * down,
            "crowded": busiest["products"] * max(0.0, held / CROWDED - 1),
            "lanes": busiest["elements"] / self.threads,
            "overflow": busiest["ragged"] * work.tile_bytes / CACHE,
        }
        return {name: float(amount) + TINY for name, amount in found.items()}


FUNCTIONS = " with functions"
COUNTED = ("iterations", "products", "functions", "elements", "near", "far", "dots", "left", "right", "ragged")
TINY = 1e-12
CACHE = 256 * 1024
"""Bytes near a thread of a CPU. Tiles that reach beyond their arrays go to memory between ops, others do not."""
MOST_SUMS, CROWDED = 160, 128
"""Accumulators of a thread: from how many on a block has more threads, and from how many on they do not fit well."""


_PRODUCTS = {"always": 4e-6, "programs": 1e-6, "iterations": 1e-7, "functions": 5e-11, "footprint": 3e-13}
_HOST = {"always": 3e-6, "programs": 1e-7, "functions": 1e-9, "elements": 2e-10, "near": 1e-11, "far": 1e-10}
START: Mapping[str, Mapping[str, float]] = {
    "cuda warp groups": {**_PRODUCTS, "products": 1.5e-13, "moved": 1e-13},
    "cuda products": {**_PRODUCTS, "products": 3e-13, "far": 1e-10, "shared": 5e-12, "crowded": 1e-13},
    "cuda products of 32 bits": {**_PRODUCTS, "products": 2e-12, "far": 1e-10, "shared": 5e-12, "crowded": 1e-12},
    "cuda rows": {"always": 5e-6, "programs": 1e-8, "lanes": 1e-9, "far": 1e-11, "footprint": 3e-13},
    "cpu products of 32 bits": {**_HOST, "dots": 1e-7, "products": 2e-11},
    "cpu products of 16 bits": {**_HOST, "dots": 1e-7, "products": 5e-11},
    "cpu rows": {**_HOST, "overflow": 1e-9},
}
"""The amounts that count for each family, and about how many seconds each of them takes."""
