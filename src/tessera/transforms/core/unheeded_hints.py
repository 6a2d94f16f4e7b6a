"""The hints of a tile function that change nothing on the way it is compiled, each with its reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from xdsl.ir import Operation

from tessera.ir.common.locations import span_of
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.hint_attributes import HINTS, hints_of
from tessera.transforms.core.compile_report import Refusal

Reasons = Callable[[Operation], Iterator[tuple[str, str]]]
"""The hints of an op that change nothing, by name, and why."""


def unheeded(function: tile.FuncOp, reasons: Reasons) -> list[Refusal]:
    """Refusals of hints: one for all ops of which the same is asked, and refused for the same reason."""
    found: dict[tuple[str, str], list[Operation]] = {}
    for op in (one for one in function.walk() if HINTS in one.attributes):
        asked = dict(hints_of(op).said())
        for name, reason in reasons(op):
            found.setdefault((f"{name}={asked[name]}", reason), []).append(op)
    return [_refusal(asked, reason, ops) for (asked, reason), ops in found.items()]


def _refusal(asked: str, reason: str, ops: list[Operation]) -> Refusal:
    what = f"{asked} in {len(ops)} places" if len(ops) > 1 else asked
    # What is about the whole kernel comes from its schedule.
    span = None if isinstance(ops[0], tile.FuncOp) else span_of(ops[0].location)
    return Refusal(what, reason, span, is_slower=False, is_hint=True)
