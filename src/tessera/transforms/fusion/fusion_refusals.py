"""Fusions that were refused: which ops are no one kernel, why, and what would help.

Formers give the reason where they decide. A refusal is a fallback where a value goes through memory because of a limit
of our kernels; it is none where what is computed forbids one kernel, or where one kernel would take longer.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from tessera.ir.common.locations import span_of
from tessera.ir.graph import dialect as graph
from tessera.ir.schedule import dialect as schedule
from tessera.transforms.core.compile_report import CompileReport, Refusal
from tessera.transforms.core.legality import VIEWS


@dataclass(frozen=True)
class Reason:
    """Why ops are no one kernel, and what would help; with `is_limit`, only a limit of our kernels is in the way."""

    text: str
    hint: str | None = None
    is_limit: bool = False


AS_KERNEL = "write these ops as one @kernel"
NOT_AT_ONCE = Reason(
    "something between them needs one and is needed by the other, or has effects",
    "compute what stands between them before or after both",
)


class FusionRefusals:
    """The refusals of a block. Ops that are moved into a region in the meantime may be named: they keep their names."""

    def __init__(self, report: CompileReport) -> None:
        self._report = report
        self._epilogues: dict[Operation, list[Refusal]] = {}

    def refuse(self, ops: Collection[Operation], reason: Reason, at: Operation) -> None:
        """These ops are not one kernel; `at` is the one whose line is told."""
        self._report.refuse(_refusal(ops, reason, at))

    def refuse_epilogue(self, ops: Collection[Operation], reason: Reason, at: Operation) -> None:
        """The same, unless `at` becomes the epilogue of another kernel: it may be in one only."""
        self._epilogues.setdefault(at, []).append(_refusal(ops, reason, at))

    def take(self, ops: Collection[Operation]) -> None:
        """These ops are in a kernel behind its dots."""
        for op in ops:
            self._epilogues.pop(op, None)

    def settle(self) -> None:
        """Puts what epilogues were refused into the report."""
        for refusals in self._epilogues.values():
            for one in refusals:
                self._report.refuse(one)
        self._epilogues.clear()


def computed(value: SSAValue) -> Operation | None:
    """The op that computes a value, or that of which it is an arrangement; None where it is there already."""
    op = value.owner
    while isinstance(op, VIEWS):
        op = op.operand.owner
    return op if isinstance(op, graph.EwOp | graph.ReduceOp) else None


def first_user(op: Operation, among: Collection[Operation]) -> Operation | None:
    """The first of some ops that computes with a result of one, perhaps in another arrangement."""
    for result in op.results:
        for use in result.uses:
            user = use.operation
            found = first_user(user, among) if isinstance(user, VIEWS) else user
            if found is not None and found in among:
                return found
    return None


def named(op: Operation) -> str:
    """The name of an op as users of tensors have it."""
    if isinstance(op, graph.EwOp):
        return op.fn.data
    if isinstance(op, graph.ReduceOp):
        return op.kind.data
    if isinstance(op, schedule.RegionOp):
        inside = [one for one in op.body.block.ops if not isinstance(one, schedule.YieldOp)]
        return named(inside[-1]) if inside else op.kind.data
    return op.name.removeprefix("graph.")


def _refusal(ops: Collection[Operation], reason: Reason, at: Operation) -> Refusal:
    names = [named(op) for op in ops]
    way = f"one kernel of {', '.join(names[:-1])} and {names[-1]}"
    return Refusal(way, reason.text, span_of(at.location), reason.hint, reason.is_limit)
