"""choose-blocks: gives the regions around products blocks for a target, where nobody gave them any.

It stands between `graph-to-schedule` and `schedule-to-tile`; what it chose is in Schedule IR, for people to read.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tessera.dialects import schedule
from tessera.dialects.schedule_types import Config, ConfigAttr
from tessera.errors import TesseraError
from tessera.transforms.check_indices import CheckIndices
from tessera.transforms.pipeline import Stage, default_stages

KINDS = ("product", "online")
"""The regions whose blocks are chosen here."""


@dataclass(frozen=True)
class ChooseBlocks(ModulePass):
    """`target` is `cpu` or `cuda`, `level` its instruction set, such as `amx` or `sm_90a`."""

    name = "choose-blocks"
    target: str = "cpu"
    level: str = "avx512"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for region in op.walk():
            if isinstance(region, schedule.RegionOp) and region.kind.data in KINDS and region.config.data == Config():
                region.properties["config"] = ConfigAttr(candidates(region, self.target, self.level)[0])


def stages_for(target: str, level: str, checks: AbstractSet[str] = frozenset()) -> dict[str, Stage]:
    """The stages of a compile for a target, with the safety checks that are about graphs."""
    stages: dict[str, Stage] = {}
    if "bounds" in checks:
        stages[CheckIndices.name] = Stage(CheckIndices(), "graph")
    for name, stage in default_stages().items():
        if name == "schedule-to-tile":
            stages[ChooseBlocks.name] = Stage(ChooseBlocks(target, level), "schedule")
        stages[name] = stage
    return stages


def candidates(region: schedule.RegionOp, target: str, level: str) -> list[Config]:
    """The configs worth trying for a region on a target, the best first."""
    if target == "cpu":
        from tessera.targets.cpu.region_blocks import block_for

        return [block_for(region, level)]
    if target == "cuda":
        from tessera.targets.cuda.region_blocks import blocks_for

        return blocks_for(region, level)
    raise TesseraError(f"blocks are chosen for cpu and cuda, not for {target}", hint="name one of them")
