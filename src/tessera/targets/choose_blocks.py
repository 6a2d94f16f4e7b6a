"""choose-blocks: gives the regions around matmuls blocks for a target, where the user gave none.

It stands between `graph-to-schedule` and `schedule-to-tile`; what it chose is in Schedule IR, for people to read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from types import MappingProxyType

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tessera.compiler.target import target_named
from tessera.ir.common.schedule_attributes import Config, ConfigAttr
from tessera.ir.schedule import dialect as schedule
from tessera.transforms.checks.check_indices import CheckIndices
from tessera.transforms.fusion.fold_groups import FoldGroups
from tessera.transforms.fusion.graph_to_schedule import GraphToSchedule
from tessera.transforms.fusion.split_depth import SplitDepth
from tessera.transforms.pipeline import Stage, default_stages

KINDS = ("matmul", "online")
"""The regions whose blocks are chosen here."""


@dataclass(frozen=True)
class ChooseBlocks(ModulePass):
    """`target` is `cpu` or `cuda`, `level` its instruction set, such as `amx` or `sm_90a`.

    `hints` say about how large symbols are, as `S=512`: blocks are chosen for that, and serve any size. `rank` takes
    the second best blocks, or the third, where there are so many.
    """

    name = "choose-blocks"
    target: str = "cpu"
    level: str = "avx512"
    hints: tuple[str, ...] = ()
    rank: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        hints = {symbol: int(number) for symbol, _, number in (hint.partition("=") for hint in self.hints)}
        for region in op.walk():
            if isinstance(region, schedule.RegionOp) and region.kind.data in KINDS and region.config.data == Config():
                found = candidates(region, self.target, self.level, hints)
                region.properties["config"] = ConfigAttr(found[min(self.rank, len(found) - 1)])


def stages_for(
    target: str,
    level: str,
    hints: Sequence[str] = (),
    rank: int = 0,
    *,
    checks: AbstractSet[str] = frozenset(),
    joined: bool = True,
) -> dict[str, Stage]:
    """The stages of a compile for a target, with the safety checks that are about graphs; see `ChooseBlocks`.

    Unless it is told not to, it joins kernels of few rows to fewer.
    """
    stages: dict[str, Stage] = {}
    machine = target_named(target)
    if "bounds" in checks:
        stages[CheckIndices.name] = Stage(CheckIndices(), "graph")
    for name, stage in default_stages().items():
        if name == GraphToSchedule.name and joined:
            if machine.tile_rows:
                stages[FoldGroups.name] = Stage(FoldGroups(machine.tile_rows), "graph")
            stages[name] = Stage(GraphToSchedule(machine.gemv_rows, machine.instances), "schedule")
            continue
        if name == "schedule-to-tile":
            stages[ChooseBlocks.name] = Stage(ChooseBlocks(target, level, tuple(hints), rank), "schedule")
            stages[SplitDepth.name] = Stage(SplitDepth(), "schedule")
        stages[name] = stage
    return {**stages, **target_named(target).graph_stages()}


def candidates(
    region: schedule.RegionOp, target: str, level: str, hints: Mapping[str, int] = MappingProxyType({})
) -> list[Config]:
    """The configs worth trying for a region on a target, the best first."""
    return target_named(target).blocks_for(region, level, hints)
