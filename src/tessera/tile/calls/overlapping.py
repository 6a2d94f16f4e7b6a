"""Kernels whose arguments share memory: which of them do, as programs and logs have it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tessera import knobs

if TYPE_CHECKING:
    from xdsl.ir import Operation

Groups = tuple[tuple[str, ...], ...]
"""Paths of arrays that overlap, in groups; both in order."""


def merged_groups(groups: Iterable[Iterable[str]]) -> Groups:
    """Groups without common members: those that have one are one."""
    found: list[set[str]] = []
    for group in map(set, groups):
        apart = [one for one in found if one.isdisjoint(group)]
        found = [*apart, group.union(*(one for one in found if not one.isdisjoint(group)))]
    return tuple(sorted(tuple(sorted(group)) for group in found))


def say_overlapping(function: Operation, paths: Sequence[str], groups: Iterable[Iterable[str]]) -> None:
    """Says of a tile function, with arguments at these paths, which of them may overlap."""
    from tessera.ir.common.attributes import integers
    from tessera.ir.tile.dialect import OVERLAPPING, first_overlapping

    firsts = list(first_overlapping(function, len(paths)))
    before = [(paths[first], paths[index]) for index, first in enumerate(firsts) if first != index]
    for group in merged_groups([*before, *groups]):
        members = [index for index, path in enumerate(paths) if path in group]
        for index in members:
            firsts[index] = members[0]
    if firsts != list(range(len(paths))):
        function.attributes[OVERLAPPING] = integers(firsts)


def log_overlap(name: str, groups: Groups) -> None:
    """Says that a slower program serves a call, where fallbacks are logged."""
    if "fallbacks" in knobs.logs.value:
        import logging

        listed = "; ".join(" and ".join(group) for group in groups)
        logging.getLogger("tessera.fallbacks").warning(
            "%s: %s overlap, so it is compiled to load and store in the order in which it is written", name, listed
        )
