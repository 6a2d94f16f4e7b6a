"""What traces show to be invariant: the facts worth assuming."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from tessera.metatracing.client import facts_of
from tessera.metatracing.records import Described, Number, Record


def invariant_words(paths: Sequence[str], records: Iterable[Record], here: Described, share: float) -> tuple[str, ...]:
    """The words of all facts about a call that were the same for at least this share of the recorded time."""
    spent: dict[Described, int] = defaultdict(int)
    for record in records:
        spent[record.arguments] += max(1, record.nanoseconds * record.stands_for)
    wanted = facts_of(paths, here)
    same: dict[str, int] = dict.fromkeys(wanted, 0)
    total = 0
    for arguments, nanoseconds in spent.items():
        total += nanoseconds
        for word, value in facts_of(paths, arguments).items():
            if word in wanted and _alike(value, wanted[word]):
                same[word] += nanoseconds
    return tuple(sorted(word for word, nanoseconds in same.items() if nanoseconds >= share * total))


def few_cases(records: Iterable[Record], most: int, share: float) -> bool:
    """Whether at most so many different arguments make up this share of the time: each may have its own program."""
    spent: dict[Described, int] = defaultdict(int)
    for record in records:
        spent[record.arguments] += max(1, record.nanoseconds * record.stands_for)
    ranked = sorted(spent.values(), reverse=True)
    return sum(ranked[:most]) >= share * sum(ranked)


def _alike(one: Number, other: Number) -> bool:
    # By their texts: 0.0 and -0.0 are two, and so are 1 and True.
    return one == other and repr(one) == repr(other)
