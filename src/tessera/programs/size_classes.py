"""Programs for classes of sizes: where sizes are symbols, blocks are chosen for those that come, not for any.

A program with symbols serves all sizes, with blocks for many rows. When it is bound, its target's model is asked again,
about the sizes at hand, rounded up to a few in each octave. Where it chooses other blocks, or parts of a depth, there
is another program of the same function for these: as many as the model makes differences, and a few at most. Rows
that are fewer than a block has are a limit besides: such a program serves no more of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from tessera.cached_property import cached_property
from tessera.errors import CompileError
from tessera.programs.program import Program
from tessera.tile.calls.program_cache import WORK
from tessera.tile.calls.settings import Settings
from tessera.transforms.core.compile_report import Refusal

MOST_PROGRAMS = 32
"""Programs of one function besides the one for many rows; the best of these serve what others would be for."""
MOST_CLASSES, RANKS = 512, 4
SMALLEST, FEWEST, STEPS = 64, 8, 4
"""Sizes up to the first have a class for each power of two, from the second on; beyond are so many in an octave."""
_REGIONS = "schedule.region<matmul>", "schedule.region<online>"

if TYPE_CHECKING:
    from tessera.ir.common.schedule_attributes import Config
    from tessera.ir.schedule.dialect import RegionOp
    from tessera.shapes.expr import Size

Choice: TypeAlias = "tuple[Config, ...]"
"""What the model chooses for each region."""
Limits = tuple[str, ...]
"""How large symbols are at most: `("M=16",)`."""
Compile = Callable[[Program, tuple[str, ...], Limits], Program]
"""Compiles the function of a program with blocks for sizes, `("S=512", …)`, and for no larger ones than limits say."""


def size_class(number: int, *, smallest: int = SMALLEST) -> int:
    """The largest size of the class that a size is in. Up to the `smallest`, those are powers of two."""
    if number <= smallest:
        return max(FEWEST, 1 << (number - 1).bit_length()) if number > 1 else 1
    unit = max(1, 1 << (number - 1).bit_length() >> STEPS.bit_length())
    return -(-number // unit) * unit


def _asked(region: RegionOp) -> tuple[Size, ...]:
    """The sizes of a region that blocks are chosen by."""
    from tessera.transforms.fusion.emit_tile_matmuls import matmul_of, spaces_of
    from tessera.transforms.fusion.emit_tile_online import online_of

    if region.kind.data == "matmul":
        spaces = spaces_of(matmul_of(region))
        return spaces.rows, spaces.columns, spaces.depth
    if region.kind.data == "online":
        spaces = online_of(region).spaces
        # Where the number of queries is open, keys are not split.
        return (spaces.batch, spaces.depth) if isinstance(spaces.rows, int) else ()
    return ()


class SizeClasses:
    """The programs of one function, by the sizes that its symbols stand for."""

    def __init__(self, general: Program, chosen: Settings, compile_: Compile) -> None:
        self.general, self.chosen, self.compile = general, chosen, compile_
        self._by_class: dict[tuple[int, ...], Program] = {}
        self._by_choice: dict[tuple[Choice, Limits], Program] = {}

    @property
    def programs(self) -> list[Program]:
        """Those besides the general one."""
        return list(self._by_choice.values())

    def program_for(self, sizes: Mapping[str, int]) -> Program:
        """The program for these sizes."""
        if not sizes or not self._is_open:
            return self.general
        key = tuple([self._class(number) for number in sizes.values()])
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
        return any(one in self.general.levels.schedule_ir.text for one in _REGIONS) and bool(self._regions)

    def _class(self, number: int) -> int:
        """The class of a size. Of few matrices with many keys each counts: keys are split by how many there are."""
        counts = any(one.kind.data == "online" for one in self._regions)
        return size_class(number, smallest=1 if counts else SMALLEST)

    @cached_property
    def _regions(self) -> list[RegionOp]:
        from tessera.ir import text
        from tessera.ir.schedule import dialect as schedule

        module = text.read(self.general.levels.schedule_ir.text)
        regions = [one for one in module.walk() if isinstance(one, schedule.RegionOp)]
        return [one for one in regions if not all(isinstance(size, int) for size in _asked(one))]

    def _choices(self, hints: Mapping[str, int]) -> list[Choice]:
        """What the model chooses for each region, and what it would choose next."""
        compiler, level = self.chosen.compiler, self.chosen.level
        ranked = [compiler.blocks_for(region, level, hints) for region in self._regions]
        return list(zip(*[[one[min(rank, len(one) - 1)] for rank in range(RANKS)] for one in ranked], strict=True))

    @cached_property
    def _general_choice(self) -> Choice:
        return self._choices({})[0]

    def _limits(self, hints: Mapping[str, int]) -> Limits:
        """The limits of rows that are fewer than a block has: what is not there is not copied then."""
        from tessera.transforms.fusion.emit_tile_matmuls import matmul_of, spaces_of

        products = [region for region in self._regions if region.kind.data == "matmul"]
        rows = {str(spaces_of(matmul_of(region)).rows) for region in products}
        return tuple(f"{name}={size}" for name, size in sorted(hints.items()) if name in rows and size < SMALLEST)

    def _made(self, hints: Mapping[str, int]) -> Program:
        choices, limits = self._choices(hints), self._limits(hints)
        is_full = len(self._by_choice) >= MOST_PROGRAMS
        for choice in choices[: RANKS if is_full else 1]:
            # A program without limits serves those that have some, too.
            for one in (limits, ()) if is_full else (limits,):
                same = choice == self._general_choice and not one
                found = self.general if same else self._by_choice.get((choice, one))
                if found is not None:
                    return found
        if is_full:
            return self.general
        sizes = tuple(f"{name}={size}" for name, size in hints.items())
        try:
            made = self.compile(self.general, sizes, limits)
        except CompileError as error:
            # What is general is right for all sizes.
            self.general.report.refuse(Refusal.of(f"blocks for {', '.join(sizes)}", error))
            self.general.report.tell(self.general.name)
            return self.general
        self._by_choice[choices[0], limits] = made
        return made
