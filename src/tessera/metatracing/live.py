"""A live view of a runtime in the terminal: tiers over calls, speed, guards, compiles and memory.

A `LiveView` has plain figures of a runtime; it is drawn by rich, and can be read as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median, mode
from typing import TYPE_CHECKING, Any, Self

from tessera.runtime.tensor.meta import Meta
from tessera.shapes.expr import format_shape
from tessera.tiers.records import Described, ExecutionTier, Record
from tessera.tiers.reports import ReportingRuntime
from tessera.tiers.sites.specialization_site import SpecializationSite

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

_SIGNS = {1: "▁", 2: "▄", 3: "█"}
_COLOURS = {1: "yellow", 2: "cyan", 3: "green"}
_WIDTH = 24
_MOST_CASES = 12
_LATEST = 5


@dataclass(frozen=True)
class Timed:
    """How long the last calls of some arguments took at a tier, in the median."""

    tier: int
    nanoseconds: float
    calls: int


@dataclass(frozen=True)
class Case:
    """A site with certain arguments: how its calls went. `line` has a tier for each of a few stretches of calls."""

    name: str
    arguments: str
    calls: int
    line: tuple[int, ...]
    timed: tuple[Timed, ...]
    tier: int
    """The tier of its last calls; it may have been at a higher one before, which was slower."""

    @property
    def last(self) -> Timed:
        """How long calls take now."""
        return next(one for one in self.timed if one.tier == self.tier)

    @property
    def speedup(self) -> float | None:
        """The time of the first tier that was seen over that of now."""
        first, last = self.timed[0], self.last
        return None if first is last or not last.nanoseconds else first.nanoseconds / last.nanoseconds

    @classmethod
    def of(cls, name: str, records: Sequence[Record], width: int, *more: Any) -> Self:
        """The case of records of one site and shape, its line so many stretches wide."""
        calls, arguments = sum(record.stands_for for record in records), words_of(records[-1].arguments)
        return cls(name, arguments, calls, line_of(records, width), timed_by_tier(records), tier_now(records), *more)


@dataclass(frozen=True)
class LiveView:
    """The state of a runtime."""

    cases: tuple[Case, ...]
    compiling: tuple[str, ...]
    programs: int
    nbytes: int
    events: dict[str, int]
    refused: dict[str, int]


def view_of(runtime: ReportingRuntime) -> LiveView:
    """The view at this moment."""
    sites = runtime.sites()
    cases = [Case.of(site.name, records, _WIDTH) for site in sites for records in by_shape(site)]
    compiling: list[str] = []
    for site in sites:
        for request in list(site.tier_policy.requests):
            count = len(request.levels) or "programs"
            compiling.append(f"{site.name}: {count} of tier {int(request.tier)}")
    stats = runtime.get_runtime_stats()
    shown = sorted(cases, key=lambda case: -case.calls)[:_MOST_CASES]
    return LiveView(
        tuple(case for case in cases if case in shown),
        tuple(compiling),
        stats.active_specialized_kernels,
        stats.specialized_kernel_bytes,
        stats.events,
        stats.guard_failures,
    )


def by_shape(site: SpecializationSite) -> Iterable[Sequence[Record]]:
    """The records of a site, those with arguments of the same shapes together."""
    with site.lock:
        records = list(site.ring)
    found: dict[object, list[Record]] = {}
    for record in records:
        found.setdefault(tuple([one.shape for one in record.arguments if isinstance(one, Meta)]), []).append(record)
    return found.values()


def tier_now(records: Sequence[Record]) -> int:
    """The tier of most of the last calls: single ones may belong to an A/B test."""
    return int(mode([record.tier for record in records[-_LATEST:]]))


def timed_by_tier(records: Sequence[Record]) -> tuple[Timed, ...]:
    """How long calls took at each tier that there was."""
    timed: list[Timed] = []
    for tier in ExecutionTier:
        laps = [record.nanoseconds for record in records if record.tier == tier]
        if laps:
            # The first calls are slowed by compilers and A/B tests.
            count = sum(record.stands_for for record in records if record.tier == tier)
            timed.append(Timed(int(tier), median(laps[-max(5, len(laps) // 2) :]), count))
    return tuple(timed)


def line_of(records: Sequence[Record], width: int) -> tuple[int, ...]:
    """The tiers of calls from first to last, each stretch by the tier that it was mostly at."""
    total = sum(record.stands_for for record in records)
    width = min(width, total)
    line: list[int] = []
    spent: dict[int, float] = {}
    filled, target = 0.0, 0.0
    for record in records:
        left = float(record.stands_for)
        while left > 0:
            target = total * (len(line) + 1) / width
            part = min(left, target - filled)
            spent[int(record.tier)] = spent.get(int(record.tier), 0.0) + part
            filled, left = filled + part, left - part
            if filled >= target - 1e-9 and len(line) < width:
                line.append(max(spent, key=lambda tier: (spent[tier], tier)))
                spent = {}
            if part <= 0:
                break
    return tuple(line)


def words_of(arguments: Described) -> str:
    """Arguments in a few words: shapes and types."""
    arrays = [one for one in arguments if isinstance(one, Meta)]
    shapes = [format_shape(one.shape) for one in arrays[:2]]
    kinds = ", ".join(dict.fromkeys(str(one.dtype) for one in arrays))
    return f"{' '.join(shapes)}{' …' if len(arrays) > 2 else ''} {kinds}"


def _time(nanoseconds: float) -> str:
    return f"{nanoseconds / 1e3:.1f} µs" if nanoseconds < 1e6 else f"{nanoseconds / 1e6:.2f} ms"


def drawn(view: LiveView) -> RenderableType:
    """The view as rich draws it."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("site")
    table.add_column("calls", justify="right", no_wrap=True)
    table.add_column("tiers over calls", no_wrap=True)
    table.add_column("a call, by tier", no_wrap=True)
    table.add_column("faster", justify="right", no_wrap=True)
    for case in view.cases:
        line = Text()
        for tier in case.line:
            line.append(_SIGNS[tier], _COLOURS[tier])
        times = "\n".join(f"{one.tier}: {_time(one.nanoseconds)}" for one in case.timed)
        faster = "" if case.speedup is None else f"×{case.speedup:.1f}"
        table.add_row(f"{case.name}\n {case.arguments}", f"{case.calls:,}", line, times, faster)
    happened = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in view.events.items() if count)
    lines = [
        Text(f"{_SIGNS[1]} tier 1, at once  {_SIGNS[2]} tier 2, sizes open  {_SIGNS[3]} tier 3, what calls show"),
        Text(f"programs above tier 1: {view.programs}, {view.nbytes / 1024:.0f} KiB of code"),
        Text(f"so far: {happened or 'nothing'}"),
    ]
    if view.refused:
        refused = ", ".join(f"{word} {count} times" for word, count in sorted(view.refused.items())[:6])
        lines.append(Text(f"guards that refused calls: {refused}"))
    lines.append(Text(f"compiling {'; '.join(view.compiling)}" if view.compiling else "compiling nothing now"))
    return Group(table, *lines)


def text_of(view: LiveView, width: int = 150) -> str:
    """The view as plain text."""
    from rich.console import Console

    console = Console(width=width, no_color=True, force_terminal=False, color_system=None)
    with console.capture() as captured:
        console.print(drawn(view))
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def live(runtime: ReportingRuntime, console: Console | None = None) -> Live:
    """The view, kept up to date in the terminal as long as a `with` is around."""
    from rich.live import Live

    def now() -> Any:
        return drawn(view_of(runtime))

    return Live(get_renderable=now, console=console, refresh_per_second=4)
