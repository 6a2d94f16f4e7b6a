"""The text of a program at each level of the IR."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b

from tessera.cached_property import cached_property


@dataclass(frozen=True)
class LevelText:
    """The text of a program at one level of the IR, with its digest."""

    text: str

    @cached_property
    def hash(self) -> str:
        return blake2b(self.text.encode(), digest_size=16).hexdigest()

    def __str__(self) -> str:
        return self.text


@dataclass
class Levels:
    """Graph, schedule and tile IR are kept; the levels below are written again when they are asked for."""

    graph_ir: LevelText
    schedule_ir: LevelText
    tile_ir: LevelText
    below: Callable[[], tuple[str, str]]

    @cached_property
    def _machine(self) -> tuple[str, str]:
        return self.below()

    @property
    def target_ir(self) -> LevelText:
        """LLVM's text of all kernels."""
        return LevelText(self._machine[0])

    @property
    def asm(self) -> LevelText:
        """Their assembly: of the processor, or PTX."""
        return LevelText(self._machine[1])
