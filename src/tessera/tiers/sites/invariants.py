"""Invariants of traces: the facts worth assuming."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import median

from tessera.tiers.client import facts_of
from tessera.tiers.records import Described, Number, Record


def invariant_words(
    paths: Sequence[str], records: Iterable[Record], here: Described, share: float, least: int = 0
) -> tuple[str, ...]:
    """The words of all facts about a call that were the same for at least this share of the time, in so many calls."""
    wanted = facts_of(paths, here)
    same: dict[str, float] = dict.fromkeys(wanted, 0.0)
    shown = dict.fromkeys(wanted, 0)
    total = 0.0
    for arguments, (calls, nanoseconds) in _cases(records).items():
        total += nanoseconds
        for word, value in facts_of(paths, arguments).items():
            if word in wanted and _alike(value, wanted[word]):
                same[word] += nanoseconds
                shown[word] += calls
    return tuple(sorted(word for word in wanted if same[word] >= share * total and shown[word] >= least))


def few_cases(records: Iterable[Record], most: int, share: float) -> bool:
    """Whether at most so many different arguments make up this share of the time: each may have its own program."""
    ranked = sorted((nanoseconds for _, nanoseconds in _cases(records).values()), reverse=True)
    return sum(ranked[:most]) >= share * sum(ranked)


def times_shown(paths: Sequence[str], records: Iterable[Record], here: Described) -> int:
    """In how many calls all facts were what they are in this one."""
    wanted = facts_of(paths, here)
    return sum(
        calls
        for arguments, (calls, _) in _cases(records).items()
        if all(_alike(value, wanted[word]) for word, value in facts_of(paths, arguments).items())
    )


def _cases(records: Iterable[Record]) -> dict[Described, tuple[int, float]]:
    """For all different arguments how many calls had them, and what these took.

    That is by the median: a first call, which takes a thousand times as long as others, would outweigh all of them.
    """
    found: dict[Described, list[Record]] = defaultdict(list)
    for record in records:
        found[record.arguments].append(record)
    cases: dict[Described, tuple[int, float]] = {}
    for arguments, several in found.items():
        calls = sum(one.stands_for for one in several)
        cases[arguments] = calls, calls * max(1, median(one.nanoseconds for one in several))
    return cases


def _alike(one: Number, other: Number) -> bool:
    # By their texts: 0.0 and -0.0 are two, and so are 1 and True.
    return one == other and repr(one) == repr(other)
