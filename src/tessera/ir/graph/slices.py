"""Slices of graph tensors: bounds that are open, and how small symbolic sizes may be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr
from xdsl.ir import Operation

from tessera.ir.common.attributes import integer
from tessera.shapes import rules
from tessera.shapes.bounds import Interval
from tessera.shapes.expr import Size

# Bounds of a slice where Python writes none: they say the same for every size of the axis.
LAST, BEFORE_FIRST = 2**63 - 1, -(2**63)

LEAST = "graph.least"
"""The attribute of a function that says how small its symbols may be, such as `{S = 2}`; at least 0 otherwise."""


def slice_shape(
    shape: Sequence[Size],
    starts: Sequence[int],
    stops: Sequence[int],
    steps: Sequence[int],
    known: Mapping[str, Interval] | None,
) -> Sequence[Size]:
    """The shape of a slice whose open ends are written as numbers."""
    # With a step backwards an open slice begins at the end, which is LAST; forwards it begins at 0.
    if len(starts) != len(steps):
        return rules.slice_shape(shape, starts, stops, steps)  # which says how many an axis takes
    begins = [None if start == LAST and step < 0 else start for start, step in zip(starts, steps, strict=True)]
    ends = [None if stop in (LAST, BEFORE_FIRST) else stop for stop in stops]
    return rules.slice_shape(shape, begins, ends, steps, known=known)


def known_sizes(op: Operation) -> Mapping[str, Interval]:
    """How small the symbols may be in the function that an op is in."""
    around: Operation | None = op
    while around is not None and LEAST not in around.attributes:
        around = around.parent_op()
    least = None if around is None else around.attributes[LEAST]
    if not isinstance(least, DictionaryAttr):
        return {}
    return {name: (bound.value.data, None) for name, bound in least.data.items() if isinstance(bound, IntegerAttr)}


def least_sizes(known: Mapping[str, Interval]) -> DictionaryAttr | None:
    """The constraints of a function on its symbols; None where there are none."""
    found = {name: integer(low) for name, (low, _) in sorted(known.items()) if low}
    return DictionaryAttr(found) if found else None
