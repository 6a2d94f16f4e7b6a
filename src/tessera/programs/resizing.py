"""Binding a program to other sizes quickly: by code that an earlier binding left.

Of what a binding works out, most depends on the program alone: pieces of memory, kernels, the code of a call. The rest
is numbers: sizes, strides, offsets in the arena, grids, tensor maps. A binding whose sizes are tracked
(`shapes/tracked.py`) leaves code that computes those of other sizes, and fills them in. Where a size has other
consequences, such as another kernel because rows lie badly, the code says so; then there is a binding, and code, for
these. Programs with control flow, effects or copies are bound the long way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tessera.programs import host
from tessera.programs.buffer_assignment import BufferAssignment, KernelLaunch, assign_buffers
from tessera.programs.memory_plan import Plan, Planner
from tessera.runtime.device.memory import contiguous_strides
from tessera.runtime.program.executable import Geometry
from tessera.runtime.tensor.tensor import Tensor
from tessera.shapes.expr import evaluator
from tessera.shapes.tracked import Again, LostError, Made, Trail, plain

MOST_FORMS, MOST_CODES = 64, 16
"""Forms of one program, and codes for one form. Where sizes keep having other consequences, it takes the long way."""

Write = Callable[[BufferAssignment, Plan], Any]
"""Gives the function of a call for assigned buffers and the plan of their memory."""


class Rebound(NamedTuple):
    """A binding: the function of a call, the plan of its memory, and the bytes of its results."""

    run: Callable[..., tuple[Tensor, ...]]
    plan: Plan
    results: int


class Resizing:
    """The code that bindings of one program left, by what arguments are apart from sizes."""

    def __init__(self, program: host.Host) -> None:
        self.program = program
        described = [program.values[number] for number in program.arguments]
        # Arguments whose sizes are numbers are told apart by their metas.
        self._is_open = [
            isinstance(one, host.Array) and not all(isinstance(size, int) for size in one.shape) for one in described
        ]
        self._known: dict[tuple[object, ...], Again] = {}

    def known(self, values: Sequence[Any], sizes: Mapping[str, int]) -> Rebound | None:
        """A binding by code that there is."""
        return None if True not in self._is_open else self._asked(values, sizes)[0]

    def bound(self, values: Sequence[Any], sizes: Mapping[str, int], write: Write) -> Rebound | None:
        """A binding by code, or one that leaves some; None where the program is to be bound the long way."""
        if True not in self._is_open:
            return None
        found, again, numbers = self._asked(values, sizes)
        if found is not None:
            return found
        return again.tracked(numbers, lambda trail, tracked: self._tracked(trail, tracked, values, list(sizes), write))

    def _asked(self, values: Sequence[Any], sizes: Mapping[str, int]) -> tuple[Rebound | None, Again, list[int]]:
        """The program bound by earlier code or None, that code, and the numbers that it was asked with."""
        # What changes without changing the form: the sizes of symbols, then strides that are not plain.
        numbers = list(sizes.values())
        form: list[object] = []
        for is_open, value in zip(self._is_open, values, strict=True):
            if not is_open:
                form.append(value.meta if value.__class__ is Tensor else None)
                continue
            meta = value.meta
            kind = meta.kind
            form.append(kind)
            if not kind.is_plain:
                numbers += meta.strides
        key = tuple(form)
        again = self._known.get(key)
        if again is None:
            if len(self._known) >= MOST_FORMS:
                self._known.clear()
            again = self._known[key] = Again(MOST_CODES)
        return again.found(numbers), again, numbers

    def _tracked(
        self, trail: Trail, numbers: Sequence[Any], values: Sequence[Any], symbols: Sequence[str], write: Write
    ) -> Made | None:
        strides = iter(numbers[len(symbols) :])
        sizes = dict(zip(symbols, numbers, strict=False))
        buffers = assign_buffers(self.program, sizes, self._geometry(sizes, strides, values))
        if not all(isinstance(act, KernelLaunch) for act in buffers.acts):
            return None
        planner = Planner(buffers)
        nbytes = [buffers.pieces[piece].nbytes for piece in planner.pieces]
        plan = planner.plan(*map(plain, nbytes))
        planned = trail.made(planner.plan, *nbytes)
        trail.ask(f"{planned.text}.homes() == {trail.text(plan.homes())}", True)
        offsets = trail.made(Plan.offsets, planned)
        slots = [
            slot._replace(offset=trail.number(f"{offsets.text}[{slot.piece}][0]", slot.offset)) for slot in plan.slots
        ]
        arena: Any = trail.number(f"{planned.text}.nbytes", plan.nbytes)
        try:
            run = write(buffers, Plan(arena, plan.least, tuple(slots)))
        except LostError:
            return None
        return trail.made(Rebound, run, planned, sum(buffer.nbytes for buffer in buffers.results))

    def _geometry(self, sizes: Mapping[str, Any], given: Iterator[Any], values: Sequence[Any]) -> list[Geometry | None]:
        """Sizes and strides of the arguments, tracked where they are not always the same."""
        found: list[Geometry | None] = []
        for is_open, number, value in zip(self._is_open, self.program.arguments, values, strict=True):
            if not isinstance(value, Tensor):
                found.append(None)
                continue
            shape, strides = value.shape, value.strides
            if is_open:
                shape = evaluator(self.program.array(number).shape)(sizes)
                strides = (
                    contiguous_strides(shape, 1) if value.meta.kind.is_plain else tuple([next(given) for _ in strides])
                )
            found.append((shape, strides))
        return found
