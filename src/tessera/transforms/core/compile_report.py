"""Reports of compiles: the way that was taken, the faster ones that were refused, and why.

Passes note here which fusions they refuse, targets which ways to compile a kernel; programs keep their report, on the
disk as well.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from tessera import knobs
from tessera.errors import CompileError, FallbackError, SourceSpan


@dataclass(frozen=True)
class Refusal:
    """A fusion, or a way to compile a kernel, that was not taken: why, where in the source, and what would help."""

    way: str
    reason: str
    span: SourceSpan | None = None
    hint: str | None = None
    is_slower: bool = True
    """Whether what is taken instead is slower code, which is a fallback; other plans of one way are not, nor are
    fusions that would take longer, or that what is computed forbids."""
    is_hint: bool = False
    """Whether it is a hint of the source that changes nothing."""

    @staticmethod
    def of(way: str, error: CompileError, *, is_slower: bool = True) -> Refusal:
        return Refusal(way, error.message, error.span, error.hint, is_slower)

    def __str__(self) -> str:
        where = "" if self.span is None else f"{self.span}: "
        return f"{where}{self.way}: {self.reason}" + (f" ({self.hint})" if self.hint else "")


@dataclass
class CompileReport:
    """The way a kernel or a program was compiled, and the refusals on the way there."""

    way: str = ""
    refusals: list[Refusal] = field(default_factory=list[Refusal])
    choices: list[str] = field(default_factory=list[str])
    """What was chosen on the way, besides, for people to know."""

    @property
    def fallbacks(self) -> list[Refusal]:
        """The refusals that make the kernel slower."""
        return [one for one in self.refusals if one.is_slower]

    def refuse(self, refusal: Refusal) -> None:
        if refusal not in self.refusals:
            self.refusals.append(refusal)

    def lines(self) -> list[str]:
        """The report in words, a line each."""
        way = [f"compiled: {self.way}"] if self.way else []
        way += [f"chosen: {one}" for one in self.choices]
        return way + [f"{'slower than' if one.is_slower else 'not'} {one}" for one in self.refusals]

    def tell(self, name: str) -> None:
        """Logs which faster ways a kernel did not take and which hints changed nothing, where fallbacks are logged.

        Faster ways that were not taken may be errors instead.

        This is asked where a program is used first in a process: compiled there, or found on the disk.
        """
        self.demand(name)
        told = [one for one in self.refusals if one.is_slower or one.is_hint]
        if told and "fallbacks" in knobs.logs.value:
            import logging

            for refusal in told:
                logging.getLogger("tessera.fallbacks").warning("@%s is compiled %s: %s", name, self.way, refusal)

    def demand(self, name: str) -> None:
        """Refuses a kernel that did not take a faster way, where fallbacks are errors; it may be known already."""
        if self.fallbacks and knobs.no_fallbacks.value:
            first, *others = self.fallbacks
            raise FallbackError(
                f"@{name} is compiled {self.way}, which is slower: {first.way}: {first.reason}",
                span=first.span,
                story=[str(other) for other in others],
                hint=first.hint or f"unset {knobs.no_fallbacks.variable} to run it as it is",
            )

    def encoded(self) -> object:
        """The report as JSON has it."""
        return {"way": self.way, "refusals": [asdict(one) for one in self.refusals], "choices": self.choices}

    @staticmethod
    def decoded(found: Any) -> CompileReport:
        """The report that JSON has; what is none raises ValueError, TypeError or KeyError."""
        refusals = [Refusal(**one | {"span": _decoded_span(one["span"])}) for one in found["refusals"]]
        words = [found["way"], *found["choices"], *[one.reason for one in refusals]]
        if not all(type(one) is str for one in words):
            raise TypeError("a report of other things than words")
        return CompileReport(found["way"], refusals, list(found["choices"]))


def _decoded_span(found: Any) -> SourceSpan | None:
    return None if found is None else SourceSpan(**dict[str, Any](found, caller=_decoded_span(found["caller"])))
