"""Every pass by name: those above the machine level, those of all targets, and those of other packages.

A package brings a pass by an entry point of the group `tessera.passes`: its name, and a class made from `ModulePass`.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import metadata

from xdsl.passes import ModulePass

from tessera.compiler.target import target_named, target_names
from tessera.targets.choose_blocks import ChooseBlocks
from tessera.transforms import pipeline


def all_passes() -> Mapping[str, type[ModulePass]]:
    """The passes that `tessera opt` runs."""
    found: dict[str, type[ModulePass]] = {**pipeline.TARGET_INDEPENDENT_PASSES, ChooseBlocks.name: ChooseBlocks}
    for name in target_names():
        found |= target_named(name).passes()
    found |= {one.name: one.load() for one in metadata.entry_points(group="tessera.passes") if one.name not in found}
    return found


ALL_PASSES: Mapping[str, type[ModulePass]] = all_passes()
