"""Candidates: which programs of a tier are worth compiling for a call, best guess first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tessera.tiers.client import Call, Choice, Client, TierLevel
from tessera.tiers.records import ExecutionTier
from tessera.tiers.sites.ab_test import FAR_BEHIND, Contender
from tessera.tiers.sites.schedule_history import ScheduleHistory
from tessera.tile.language.schedule import Schedule

TIER2, TIER3 = ExecutionTier.TIER2_STANDARD, ExecutionTier.TIER3_SPECIALIZED
_BRIDGES = 2  # programs that are compiled for arguments which others refused
NEAR = 1.1
"""Times the best: a schedule that took no longer when it was last compared may have been the best."""
Times = Mapping[Schedule | None, float]
"""How long programs took, by their schedules, when they were last compared."""


def tier2_levels(
    client: Client, call: Call, most: int, schedule_history: ScheduleHistory | None = None
) -> list[TierLevel]:
    """Sizes left open, under schedules that history or the client holds best; always with its own."""
    chosen = recommended(client, call, schedule_history)
    first = chosen[:most]
    if chosen and None in chosen and None not in first:
        first[-1] = None
    return _choices_last([TierLevel(TIER2, (), one) for one in first])


def _choices_last(levels: Sequence[TierLevel]) -> list[TierLevel]:
    """Puts models' choices last: models take longer to choose than other programs to be compiled."""
    return sorted(levels, key=lambda level: isinstance(level.schedule, Choice))


def recommended(client: Client, call: Call, schedule_history: ScheduleHistory | None) -> list[Schedule | None]:
    """The client's schedules, those first that did well for such arguments before."""
    schedules = list(client.schedules(call))
    return (
        schedules
        if schedule_history is None
        else schedule_history.ranked((client.name, call.fixed), call.described, schedules)
    )


def tier3_levels(
    client: Client,
    call: Call,
    words: tuple[str, ...],
    current: Schedule | None,
    times: Times,
    most: int,
    schedule_history: ScheduleHistory | None = None,
) -> list[TierLevel]:
    """All that is assumed under the schedule in use and others, numbers alone, and the kernel as it is without traces.

    With numbers alone a program also serves calls that the others refuse; and constants do not always pay. Schedules
    that did well come first, and those that were far behind not at all. The program without traces competes again
    where it was near: the program that is taken is not measurably slower.
    """
    levels, numbers = [TierLevel(TIER3, words, current)], numbers_in(client, words)
    if numbers and numbers != words:
        levels.append(TierLevel(TIER3, numbers, current))
    best = min(times.values(), default=0.0)
    schedules = recommended(client, call, schedule_history)
    others = [one for one in schedules if one != current and times.get(one, best) <= FAR_BEHIND * best]
    levels += [TierLevel(TIER3, words, one) for one in sorted(others, key=lambda one: times.get(one, float("inf")))]
    near = current is not None and None in schedules and times.get(None, float("inf")) <= NEAR * best
    return _choices_last(levels[: most + 1] + [TierLevel(TIER2, (), None)] * near)


def bridge_levels(tier: ExecutionTier, words: tuple[str, ...], schedules: Sequence[Schedule | None]) -> list[TierLevel]:
    """For arguments that others refused: under the first two of these schedules, such as the one that others took."""
    return [TierLevel(tier, words, one) for one in dict.fromkeys(schedules)][:_BRIDGES]


def numbers_in(client: Client, words: Sequence[str]) -> tuple[str, ...]:
    """The words that are about numbers."""
    return tuple(word for word in words if word in client.paths)


def general_fallback(
    client: Client, best: Contender, times: Mapping[Contender, float | None], otherwise: float | None
) -> Contender | None:
    """The program to keep beside a winner that assumes sizes: one that assumes numbers alone serves refused calls.

    It has to be faster than the program that would serve such calls otherwise.
    """
    program = best.program
    numbers = numbers_in(client, program.level.assumed)
    if program.tier is not TIER3 or program.is_bridge or numbers == program.level.assumed:
        return None
    found = [one for one in times if one.program.tier is TIER3 and one.program.level.assumed == numbers]
    return next((one for one in found if (took := times[one]) is not None and took < (otherwise or 0)), None)
