"""Every pass by name: those above the machine level, and those of the targets."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.passes import ModulePass

from tessera.targets.choose_blocks import ChooseBlocks
from tessera.targets.cpu.lower.tile_to_cpu import TileToCpu
from tessera.targets.cuda.lower.tile_to_nv import TileToNv
from tessera.transforms import pipeline

ALL_PASSES: Mapping[str, type[ModulePass]] = {
    **pipeline.TARGET_INDEPENDENT_PASSES,
    **{kind.name: kind for kind in (ChooseBlocks, TileToCpu, TileToNv)},
}
