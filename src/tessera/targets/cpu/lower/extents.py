"""Between what numbers the offsets, sizes and strides of a tile function lie, from the function and from facts.

A fact that decides something is asked for, and so becomes a guard; others leave no trace.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, BlockArgument, SSAValue

from tessera.ir.tile import dialect as tile
from tessera.shapes.expr import Dim
from tessera.transforms.core.facts import Fact, FactKind, Recorder


@dataclass(frozen=True)
class Span:
    """The least and the greatest that a number may be, and the facts that say so."""

    low: float = -inf
    high: float = inf
    because: frozenset[Fact] = frozenset()

    @property
    def number(self) -> int | None:
        return int(self.low) if self.low == self.high else None


class Extents:
    """Answers for one function."""

    def __init__(self, function: tile.FuncOp, recorder: Recorder) -> None:
        self._function, self._recorder = function, recorder
        self._spans: dict[SSAValue, Span] = {}
        self._sizes: dict[str, Span] = {}
        for index, shape in enumerate(function.shapes):
            for axis, size in enumerate(shape.data):
                if (
                    isinstance(size, Dim)
                    and (found := self._fact(FactKind.SIZE, f"arg{index}.size[{axis}]")) is not None
                ):
                    self._sizes.setdefault(str(size), found)

    def decide(self, *spans: Span) -> None:
        """Makes guards of what these rest on."""
        for span in spans:
            for atom in span.because:
                self._recorder.ask(atom)

    def _fact(self, kind: FactKind, subject: str) -> Span | None:
        for atom in self._recorder.facts.about(kind, subject):
            return Span(int(atom.value), int(atom.value), frozenset({atom}))
        return None

    def size(self, view: SSAValue, axis: int) -> Span:
        if isinstance(view.owner, tile.ViewOp):
            return self.span(view.owner.sizes[axis])
        if not isinstance(view, BlockArgument) or view not in self._function.arguments:
            return Span(0)
        known = self._function.shapes.data[view.index].data[axis]
        if isinstance(known, int):
            return Span(known, known)
        return self._fact(FactKind.SIZE, f"arg{view.index}.size[{axis}]") or self._sizes.get(str(known)) or Span(0)

    def stride(self, view: SSAValue, axis: int) -> Span:
        if isinstance(view.owner, tile.ViewOp):
            return self.span(view.owner.strides[axis])
        if not isinstance(view, BlockArgument) or view not in self._function.arguments:
            return Span()
        return self._fact(FactKind.STRIDE, f"arg{view.index}.stride[{axis}]") or Span()

    def span(self, value: SSAValue) -> Span:
        """Between what numbers a scalar lies."""
        if value not in self._spans:
            self._spans[value] = self._find(value)
        return self._spans[value]

    def _find(self, value: SSAValue) -> Span:
        op = value.owner
        if isinstance(op, Block):
            loop = op.parent_op()
            return self._counter(loop) if isinstance(loop, scf.ForOp) and op.args[0] is value else Span()
        if isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr):
            return Span(op.value.value.data, op.value.value.data)
        if isinstance(op, tile.ProgramIdOp):
            instances = self._instances(op.axis.value.data)
            return Span(0, max(0, instances.high - 1), instances.because)
        if isinstance(op, tile.DimOp):
            return self.size(op.view, op.axis.value.data)
        if isinstance(op, tile.StrideOp):
            return self.stride(op.view, op.axis.value.data)
        if isinstance(op, arith.IndexCastOp):
            return self.span(op.input)
        rule = _RULES.get(type(op))
        return Span() if rule is None else _joined(rule, *(self.span(operand) for operand in op.operands))

    def _counter(self, loop: scf.ForOp) -> Span:
        first, last, step = (self.span(bound) for bound in (loop.lb, loop.ub, loop.step))
        if first.number is None or last.number is None or not step.number:
            return Span(first.low, last.high - 1, first.because | last.because)
        iterations = max(0, last.number - 1 - first.number) // step.number
        return Span(first.low, first.low + iterations * step.number, first.because | last.because | step.because)

    def _instances(self, axis: int) -> Span:
        count = self._function.grid.data[axis]
        if isinstance(count, int):
            return Span(count, count)
        known = {name: self._sizes.get(name) for name in count.symbols}
        if any(span is None for span in known.values()):
            return Span(0)
        spans = {name: span for name, span in known.items() if span is not None}
        number = count.evaluate({name: int(span.low) for name, span in spans.items()})
        return Span(number, number, frozenset[Fact]().union(*(span.because for span in spans.values())))


_Rule = Callable[[Span, Span], tuple[float, float]]


def _joined(rule: _Rule, a: Span, b: Span) -> Span:
    return Span(*rule(a, b), a.because | b.because)


def _product(a: Span, b: Span) -> tuple[float, float]:
    if a.low < 0 or b.low < 0:
        return -inf, inf
    return a.low * b.low, 0 if 0 in (a.high, b.high) else a.high * b.high


_RULES: Mapping[type[Any], _Rule] = {
    arith.AddiOp: lambda a, b: (a.low + b.low, a.high + b.high),
    arith.SubiOp: lambda a, b: (a.low - b.high, a.high - b.low),
    arith.MuliOp: _product,
    arith.MinSIOp: lambda a, b: (min(a.low, b.low), min(a.high, b.high)),
    arith.MaxSIOp: lambda a, b: (max(a.low, b.low), max(a.high, b.high)),
}
