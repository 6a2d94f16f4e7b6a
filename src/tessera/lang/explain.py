"""Looking inside jitted functions: every level of a program, what it depends on, and why it was compiled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from tessera import knobs
from tessera.cached_property import cached_property
from tessera.compiler.target import target_named
from tessera.device_names import HOST
from tessera.errors import SourceSpan
from tessera.lang.calls.parameters import Call
from tessera.lang.calls.variants import Family, Reason, Variant
from tessera.shapes.expr import format_shape
from tessera.tile.calls.settings import Settings

if TYPE_CHECKING:
    from tessera.programs import Program
    from tessera.programs.levels import LevelText


_MOST_LISTED = 6
"""Of a parameter that holds more arrays and numbers than these, some are listed, and the others counted."""


class Lowered:
    """A function for certain arguments, at every level; each has `.text` and `.hash`."""

    def __init__(self, variant: Variant) -> None:
        self._variant = variant

    @cached_property
    def program(self) -> Program:
        """The compiled program: its kernels, its memory. Where the interpreter runs it, one for a usual processor."""
        made = self._variant.program
        if made.settings is not None:
            return made
        from tessera.programs import compile_graph

        level = target_named(HOST).default_level()
        usual = Settings(HOST, level, knobs.optimization.value, frozenset(), knobs.deterministic.value, False)
        return compile_graph(self._variant.traced.module, usual)

    @property
    def graph_ir(self) -> LevelText:
        return self.program.levels.graph_ir

    @property
    def schedule_ir(self) -> LevelText:
        return self.program.levels.schedule_ir

    @property
    def tile_ir(self) -> LevelText:
        return self.program.levels.tile_ir

    @property
    def target_ir(self) -> LevelText:
        return self.program.levels.target_ir

    @property
    def asm(self) -> LevelText:
        return self.program.levels.asm

    @property
    def kernels(self) -> tuple[str, ...]:
        """The kernel of each launch, in order."""
        return self.program.kernels

    def __repr__(self) -> str:
        return f"<{self._variant.traced.name} lowered, {len(self.kernels)} launches>"


class Explanation:
    """The programs of a jitted function, and why they were compiled. `str` of it is a text; the fields are for code."""

    def __init__(
        self, name: str, families: Sequence[Family], reasons: Sequence[Reason], tiers: Sequence[str] = ()
    ) -> None:
        self.name = name
        self.families = families
        self.reasons = tuple(reasons)
        self.tiers = tuple(tiers)
        """Lines that say which program runs at which tier, behind which guards; none for functions without tiers."""

    @property
    def variants(self) -> list[Variant]:
        return [variant for family in self.families for variant in family.variants]

    @property
    def compilations(self) -> int:
        """How many programs the function took; those that another process compiled count, too."""
        return len(self.reasons)

    @property
    def found(self) -> int:
        """How many of its programs were found on the disk."""
        return sum(variant.found for variant in self.variants)

    @property
    def fallbacks(self) -> int:
        """How many of its programs the interpreter runs because they have no machine code, or the compiler failed."""
        return sum(variant.fallback is not None for variant in self.variants)

    def __str__(self) -> str:
        lines = [f"{self.name}: compiled {_times(self.compilations)}"]
        if self.fallbacks:
            lines.append(f"  without machine code: {self.fallbacks} of {len(self.variants)} programs")
        for number, variant in enumerate(self.variants, 1):
            traced = variant.traced
            found = ", found on the disk" if variant.found else ""
            lines.append(f"  program {number}{found}, because: {variant.reason}")
            types = [(one.name, f"{format_shape(one.sizes)} of {one.dtype}") for one in traced.types]
            lines += [f"    {line}" for line in _by_parameter(types)]
            if traced.hidden:
                lines.append(f"    captured arrays: {len(traced.hidden)}")
            least = {name: low for name, (low, _) in traced.least.items() if low}
            guards = [f"{name} >= {low}" for name, low in least.items()]
            for guard in traced.guards:
                where = "" if guard.span is None else f" ({guard.span})"
                guards.append(f"{guard}, asked{where}")
            lines += [f"    only while {guard}" for guard in guards]
            lines += [f"    changes inside of {name} are not seen: {what}" for name, what in variant.unwatched.items()]
            if variant.unkept is not None and variant.fallback is None:
                lines.append(f"    not kept on the disk: {variant.unkept}")
            if traced.effects:
                lines.append(f"    effects: {', '.join(traced.effects)}")
            if variant.program.settings is None:
                lines.append(f"    runs in the interpreter: {variant.fallback or 'so it was asked, or must be here'}")
            else:
                lines.append(f"    kernels: {', '.join(variant.program.kernels) or 'none'}")
                lines += [f"    {line}" for line in variant.program.explain()]
        return "\n".join([*lines, *self.tiers])

    __repr__ = __str__


def _times(count: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")


def reason(name: str, call: Call, family: Family, span: SourceSpan | None, earlier: int) -> Reason:
    """Why a call needs a program that there is not yet."""
    if not family.variants:
        text = "the first call" if not earlier else "arguments of other types, structure or static values, or settings"
        return Reason(f"{text}: {_shown(call)}", span)
    last = family.variants[-1]
    if last.unchanged is not None and not last.unchanged():
        return Reason("something that it sees from outside is another object now", span)
    for leaf, one, value in zip(call.leaves, last.traced.types, call.values, strict=True):
        for axis, (expected, actual) in enumerate(zip(one.sizes, value.shape, strict=True)):
            if isinstance(expected, int) and expected != actual:
                return Reason(f"argument '{leaf.name}', axis {axis}: {expected} became {actual}", span)
    return Reason(f"{_broken(call, last)}: {_shown(call)}", span)


def _broken(call: Call, variant: Variant) -> str:
    """The guards of a program that do not hold any more."""
    sizes: dict[str, int] = {}
    for one, value in zip(variant.traced.types, call.values, strict=True):
        for axis, (expected, actual) in enumerate(zip(one.sizes, value.shape, strict=True)):
            symbol = str(expected)
            if symbol.isidentifier() and sizes.setdefault(symbol, actual) != actual:
                was = sizes[symbol]
                return f"argument '{one.name}', axis {axis}: {actual}, where it was always equal to one that is {was}"
    for symbol, (low, _) in variant.traced.least.items():
        if low and sizes.get(symbol, low) < low:
            return f"{symbol} >= {low} was taken for granted, and is {sizes[symbol]} now"
    for guard in variant.traced.guards:
        if guard.value.symbols <= sizes.keys() and not guard.holds(sizes):
            where = "" if guard.span is None else f" at {guard.span}"
            return f"{guard} was asked{where}, and does not hold any more"
    return "sizes that no program serves"


def _shown(call: Call) -> str:
    parts: list[tuple[str, str]] = []
    for leaf, value in zip(call.leaves, call.values, strict=True):
        kind = f"a number of {leaf.number.__name__}" if leaf.number else f"{format_shape(value.shape)} of {value.dtype}"
        parts.append((leaf.name, kind))
    return ", ".join(_by_parameter(parts)) or "no arrays"


def _by_parameter(leaves: Sequence[tuple[str, str]]) -> Iterator[str]:
    """What there is to say of arrays and numbers, by their names; of a parameter with many, such as a model, a few."""
    for parameter, group in groupby(leaves, lambda leaf: leaf[0].partition("[")[0]):
        listed = [f"{name}: {said}" for name, said in group]
        few = listed if len(listed) <= _MOST_LISTED else listed[: _MOST_LISTED // 2]
        yield from few
        if len(few) < len(listed):
            yield f"{parameter}: and {len(listed) - len(few)} more"
