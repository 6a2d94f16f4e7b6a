"""Binding a program to other sizes quickly: by code that an earlier binding left.

Of what a binding works out, most depends on the program alone: pieces of memory, kernels, the code of a call. The rest
is numbers: sizes, strides, places in the arena, grids, tensor maps. A binding whose sizes are tracked
(`shapes/tracked.py`) leaves code that computes those of other sizes, and fills them in. Where a size has other
consequences, such as another kernel because rows lie badly, the code says so; then there is a binding, and code, for
these. Programs with control flow, effects or copies are bound the long way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from tessera.lang.programs import host
from tessera.lang.programs.layout import Layout, Run, lay_out
from tessera.lang.programs.memory_plan import Plan, Planner
from tessera.runtime.executable import Geometry
from tessera.runtime.memory import contiguous_strides
from tessera.runtime.tensor import Tensor
from tessera.shapes.expr import evaluator
from tessera.shapes.tracked import LostError, Trail, plain

MOST_FORMS, MOST_CODES = 64, 16
"""Of one program, and for arguments of a form. Where sizes keep having other consequences, it takes the long way."""

Code = Callable[..., "Again | None"]
Write = Callable[[Layout, Plan], Any]
"""Gives the function of a call for a layout and its memory."""


class Again(NamedTuple):
    """What the code of a trail gives: the function of a call, the plan of its memory, and the bytes of its results."""

    run: Callable[..., tuple[Tensor, ...]]
    plan: Plan
    results: int


class Form(NamedTuple):
    """What arguments are apart from sizes, and their sizes: those of the symbols, then strides that are not plain."""

    key: tuple[object, ...]
    numbers: tuple[int, ...]


@dataclass
class _Known:
    """The code for arguments of one form."""

    codes: tuple[Code, ...] = ()
    is_due: bool = False
    """Whether the next time that no code serves is to leave some."""
    is_open: bool = True
    """Whether there may be code at all."""


class Resizing:
    """The code that bindings of one program left, by the forms of arguments."""

    def __init__(self, program: host.Host) -> None:
        self.program = program
        described = [program.values[number] for number in program.arguments]
        # Arguments whose sizes are numbers are told apart by their metas.
        self._is_open = [
            isinstance(one, host.Array) and not all(isinstance(size, int) for size in one.shape) for one in described
        ]
        self._known: dict[tuple[object, ...], _Known] = {}

    def form(self, values: Sequence[Any], sizes: Mapping[str, int]) -> Form | None:
        """The form of arguments; None where a program is not bound again."""
        if True not in self._is_open:
            return None
        numbers = list(sizes.values())
        key: list[object] = []
        for is_open, value in zip(self._is_open, values, strict=True):
            if not is_open:
                key.append(value.meta if value.__class__ is Tensor else None)
                continue
            meta = value.meta
            is_plain = meta.strides == contiguous_strides(meta.shape, 1)
            key += [meta.device, meta.alignment, is_plain]
            if not is_plain:
                numbers += meta.strides
        return Form(tuple(key), tuple(numbers))

    def again(self, form: Form) -> Again | None:
        """The program for arguments of a form that came before with other sizes."""
        known = self._known.get(form.key)
        for code in () if known is None else known.codes:
            found = code(*form.numbers)
            if found is not None:
                return found
        return None

    def track(self, form: Form, sizes: Mapping[str, int], values: Sequence[Any], write: Write) -> Again | None:
        """Binds the program so that it is quick for other sizes; None where that is not to be.

        Tracking takes several times as long as binding, so it is done every second time that no code serves: many
        programs are bound once, and some sizes, such as 1, are a case of their own.
        """
        if len(self._known) >= MOST_FORMS:
            self._known.clear()
        known = self._known.setdefault(form.key, _Known())
        known.is_due = not known.is_due
        if known.is_due or not known.is_open or len(known.codes) >= MOST_CODES:
            return None
        code = self._tracked(sizes, values, write)
        if code is None:
            known.is_open = False
            return None
        known.codes = (*known.codes, code)
        return code(*form.numbers)

    def _tracked(self, sizes: Mapping[str, int], values: Sequence[Any], write: Write) -> Code | None:
        trail = Trail()
        tracked: dict[str, Any] = {name: trail.give(number) for name, number in sizes.items()}
        layout = lay_out(self.program, tracked, self._geometry(trail, tracked, values))
        if not all(isinstance(act, Run) for act in layout.acts):
            return None
        planner = Planner(layout)
        nbytes = [layout.pieces[piece].nbytes for piece in planner.pieces]
        plan = planner.plan(*map(plain, nbytes))
        planned = trail.made(planner.plan, *nbytes)
        trail.ask(f"{planned.text}.homes() == {trail.text(plan.homes())}", True)
        offsets = trail.made(Plan.offsets, planned)
        slots = [
            replace(slot, offset=trail.number(f"{offsets.text}[{slot.piece}][0]", slot.offset)) for slot in plan.slots
        ]
        arena: Any = trail.number(f"{planned.text}.nbytes", plan.nbytes)
        try:
            run = write(layout, Plan(arena, plan.least, tuple(slots)))
        except LostError:
            return None
        results = sum(place.nbytes for place in layout.results)
        return trail.function(trail.made(Again, run, planned, results).text)

    def _geometry(self, trail: Trail, sizes: Mapping[str, Any], values: Sequence[Any]) -> list[Geometry | None]:
        """Sizes and strides of the arguments, tracked where they are not always the same."""
        found: list[Geometry | None] = []
        for is_open, number, value in zip(self._is_open, self.program.arguments, values, strict=True):
            if not isinstance(value, Tensor):
                found.append(None)
                continue
            shape, strides = value.shape, value.strides
            if is_open:
                shape = evaluator(self.program.array(number).shape)(sizes)
                is_plain = strides == contiguous_strides(value.shape, 1)
                strides = contiguous_strides(shape, 1) if is_plain else tuple([trail.give(one) for one in strides])
            found.append((shape, strides))
        return found
