"""Programs for classes of sizes: where sizes are symbols, blocks are chosen for those that come, not for any.

A program with symbols serves all sizes, with blocks for many rows. When it is bound, its target's model is asked again,
about the sizes at hand, rounded up to a few in each octave. Where it chooses other blocks, or parts of a depth, there
is another program of the same function for these: as many as the model makes differences, and a few at most.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tessera.cached_property import cached_property
from tessera.tile.calls.program_cache import WORK
from tessera.tile.calls.settings import Settings

if TYPE_CHECKING:
    from tessera.programs.program import Program

MOST_PROGRAMS = 32
"""Programs of one function besides the one for many rows; the best of these serve what others would be for."""
MOST_CLASSES, RANKS = 512, 4
SMALLEST, STEPS = 64, 4
"""Sizes up to the former are one class; beyond it there are so many in each octave."""
_REGION = "schedule.region<matmul>"

Compile = Callable[[tuple[str, ...]], "Program"]
"""Compiles a function with blocks for sizes: `("S=512", …)`."""


def size_class(number: int) -> int:
    """The largest size of the class that a size is in."""
    if number <= SMALLEST:
        return SMALLEST if number > 1 else 1
    unit = 1 << (number - 1).bit_length() >> STEPS.bit_length()
    return -(-number // unit) * unit


class SizeClasses:
    """The programs of one function, by the sizes that its symbols stand for."""

    def __init__(self, general: Program, chosen: Settings, compile_: Compile) -> None:
        self.general, self.chosen, self.compile = general, chosen, compile_
        self._by_class: dict[tuple[int, ...], Program] = {}
        self._by_choice: dict[tuple[Any, ...], Program] = {}

    @property
    def programs(self) -> list[Program]:
        """Those besides the general one."""
        return list(self._by_choice.values())

    def program_for(self, sizes: Mapping[str, int]) -> Program:
        """The program for these sizes."""
        if not self._is_open or not sizes:
            return self.general
        key = tuple([size_class(number) for number in sizes.values()])
        found = self._by_class.get(key)
        if found is None:
            with WORK.compiling():
                found = self._by_class.get(key) or self._made(dict(zip(sizes, key, strict=True)))
                if len(self._by_class) >= MOST_CLASSES:
                    self._by_class.clear()
                self._by_class[key] = found
        return found

    @cached_property
    def _is_open(self) -> bool:
        """Whether blocks are chosen by a model, for sizes that are symbols."""
        if not self.chosen.compiler.models_blocks(self.chosen.level) or self.chosen.checks:
            return False
        return _REGION in self.general.levels.schedule_ir.text and bool(self._regions)

    @cached_property
    def _regions(self) -> list[Any]:
        from tessera.ir import text
        from tessera.ir.schedule import dialect as schedule
        from tessera.transforms.fusion.emit_tile_matmuls import matmul_of, spaces_of

        module = text.read(self.general.levels.schedule_ir.text)
        regions = [one for one in module.walk() if isinstance(one, schedule.RegionOp) and one.kind.data == "matmul"]
        found: list[Any] = []
        for region in regions:
            spaces = spaces_of(matmul_of(region))
            if not all(isinstance(size, int) for size in (spaces.rows, spaces.columns, spaces.depth)):
                found.append(region)
        return found

    def _choices(self, hints: Mapping[str, int]) -> list[tuple[Any, ...]]:
        """What the model chooses for each region, and what it would choose next."""
        compiler, level = self.chosen.compiler, self.chosen.level
        ranked = [compiler.blocks_for(region, level, hints) for region in self._regions]
        return list(zip(*[[one[min(rank, len(one) - 1)] for rank in range(RANKS)] for one in ranked], strict=True))

    @cached_property
    def _general_choice(self) -> tuple[Any, ...]:
        return self._choices({})[0]

    def _made(self, hints: Mapping[str, int]) -> Program:
        choices = self._choices(hints)
        for choice in choices[: 1 if len(self._by_choice) < MOST_PROGRAMS else RANKS]:
            found = self.general if choice == self._general_choice else self._by_choice.get(choice)
            if found is not None:
                return found
        if len(self._by_choice) >= MOST_PROGRAMS:
            return self.general
        made = self._by_choice[choices[0]] = self.compile(tuple(f"{name}={size}" for name, size in hints.items()))
        return made
