"""How a value came to its shape: an immutable chain of steps that errors can tell as their story."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tessera.errors import SourceSpan
from tessera.shapes.expr import Shape, Size, format_shape


@dataclass(frozen=True, slots=True)
class ShapeHistory:
    """One step and the steps before it. `op` names the operation, `before` is None for the first step."""

    op: str
    after: Shape
    before: ShapeHistory | None = None
    span: SourceSpan | None = None

    def step(self, op: str, after: Sequence[Size], span: SourceSpan | None = None) -> ShapeHistory:
        """This history with one more operation, which gave the shape `after`."""
        return ShapeHistory(op, tuple(after), self, span)

    def lines(self) -> tuple[str, ...]:
        """The steps, oldest first: "transpose: [B, S] -> [S, B] (model.py:3:5)"."""
        lines: list[str] = []
        step: ShapeHistory | None = self
        while step is not None:
            came_from = "" if step.before is None else f"{format_shape(step.before.after)} -> "
            location = "" if step.span is None else f" ({step.span})"
            lines.append(f"{step.op}: {came_from}{format_shape(step.after)}{location}")
            step = step.before
        return tuple(reversed(lines))


def tell(histories: Sequence[ShapeHistory]) -> tuple[str, ...]:
    """The lines of several histories, without those they share."""
    return tuple(dict.fromkeys(line for history in histories for line in history.lines()))
