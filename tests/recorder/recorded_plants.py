"""Faults for processes that record: a pass that does nothing, or another constant. Only the recorder knows of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tessera.targets.choose_blocks import ChooseBlocks
from tessera.targets.cpu.emit import memory as emit_memory
from tessera.targets.cuda.lower import legalize
from tessera.targets.cuda.lower.interleave_copies import InterleaveCopies
from tessera.tile.calls import block_selection


def nothing(*_args: Any, **_options: Any) -> Any:
    """A pass that is disabled."""


class Plant(NamedTuple):
    """A replacement of an attribute, which must be there: one that was renamed would be planted in vain."""

    owner: Any
    name: str
    instead: Any

    def __call__(self) -> None:
        getattr(self.owner, self.name)
        setattr(self.owner, self.name, self.instead)


PLANTS: Mapping[str, Plant] = {
    "a pass of portable GPU code": Plant(InterleaveCopies, "rewrite", nothing),
    "a pass of GPU code": Plant(legalize, legalize.use_powers_of_two.__name__, nothing),
    "a pass over regions": Plant(ChooseBlocks, ChooseBlocks.apply.__name__, nothing),
    "a constant of CPU code": Plant(emit_memory, "UNROLL", 2),
    "a constant of chosen blocks": Plant(block_selection, "DOUBT", 1.0),
}
