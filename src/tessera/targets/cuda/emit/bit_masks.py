"""Masks of positions as bits: a thread works out once how many columns of a row are in, and tests a bit for each.

Comparing takes an instruction for every element and every bound. Columns of a row lie in a thread at regular steps, so
those below a bound are the first so many of them: a word of ones, moved. Words of several bounds are joined at once,
and the machine moves bits into predicates seven at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tessera.dtypes.types import bool_, f32
from tessera.ir.tile import dialect as tile
from tessera.targets.cuda.emit.emitter import Emitter
from tessera.targets.cuda.emit.thread_tiles import Question, ThreadTile
from tessera.targets.cuda.ir.layouts import Layout
from tessera.targets.cuda.ptx.inline import one
from tessera.targets.llvm.text import Value, number
from tessera.transforms.core.slices import rests_on_memory

_WORD = 32
_FEWEST = 8
"""Columns of a row that a thread has to hold for a word of bits to be worth its while."""
_FAR = 1 << 24
"""Farther off than any tile reaches."""


class _Form(NamedTuple):
    """A comparison of a position t, by whether positions count up: t < ±number + more, or not."""

    more: int
    below: bool


_ASCENDING: Mapping[str, _Form] = {
    "sgt": _Form(0, True),
    "sge": _Form(1, True),
    "slt": _Form(1, False),
    "sle": _Form(0, False),
}
_DESCENDING: Mapping[str, _Form] = {
    "sgt": _Form(1, False),
    "sge": _Form(0, False),
    "slt": _Form(0, True),
    "sle": _Form(1, True),
}


def emit_masks(emitter: Emitter, op: tile.EwOp, operands: Sequence[ThreadTile]) -> bool:
    """Joins masks of positions, and chooses by them, where an op does that."""
    first, *others = operands
    if first.dtype is not bool_ or first.questions is None:
        return False
    if op.fn.data == "and" and (more := others[0].questions) is not None:
        emitter.bind(op.result, questions=(*first.questions, *more))
        return True
    if op.fn.data != "select" or op.result_dtype is not f32:
        return False
    bits = _Bits.of(emitter, first)
    if bits is None:
        return False
    a, b = (operand.elements() for operand in others)

    def choose() -> list[Value]:
        return [_chosen(emitter, *one) for one in zip(bits, a, b, strict=True)]

    # Loops are not split where memory says where masks end: mostly all is in, as in the middle of a loop.
    if (full := _all_in(emitter, first)) is not None and rests_on_memory([op.operands_[0]]):
        emitter.bind(op.result, emitter.branch(full, lambda: a, choose))
    else:
        emitter.bind(op.result, choose())
    return True


def _all_in(emitter: Emitter, mask: ThreadTile) -> Value | None:
    """Whether a mask holds for all registers of a thread, by the farthest of each question."""
    assert mask.questions is not None
    farthest = {"sgt": max, "sge": max, "slt": min, "sle": min}
    if any(asked.predicate not in farthest for asked in mask.questions):
        return None
    ends = [(asked, farthest[asked.predicate](asked.offsets)) for asked in mask.questions]
    return emitter.f.all_of(emitter.f.compare(asked.predicate, asked.number, end) for asked, end in ends)


def _chosen(emitter: Emitter, bit: _Bit, a: Value, b: Value) -> Value:
    """One of two numbers. LLVM would move each bit to the end of the word first, which hides them from the machine."""
    test = f"and.b32 t, $3, {1 << bit.number:#x}; setp.ne.b32 p, t, 0;"
    return one(emitter.f, f"{{ .reg .pred p; .reg .b32 t; {test} selp.f32 $0, $1, $2, p; }}", "float", a, b, bit.word)


class _Bit(NamedTuple):
    word: Value
    number: int


@dataclass
class _Bits:
    """Columns of a row in a thread: `run` of them side by side, and again after every `period`."""

    emitter: Emitter
    run: int
    period: int
    positions: list[int]
    """Of the columns of a row, from the first on."""
    counts: dict[tuple[Value, bool, int], Value] = field(default_factory=dict[tuple[Value, bool, int], Value])
    words: dict[tuple[object, ...], Value] = field(default_factory=dict[tuple[object, ...], Value])

    @staticmethod
    def of(emitter: Emitter, mask: ThreadTile) -> list[_Bit] | None:
        """For each register its bit; None where columns do not lie so, or bounds are of another kind."""
        rows, questions = _rows(mask.layout, len(mask.shape)), mask.questions
        assert questions is not None
        if rows is None or any(one.predicate not in _ASCENDING for one in questions):
            return None
        columns = mask.layout.offsets(1)
        positions = [columns[register] - columns[rows[0][0]] for register in rows[0]]
        run = next((count for count, position in enumerate(positions) if position != count), len(positions))
        period = positions[run] if run < len(positions) else 1 << (run - 1).bit_length()
        regular = all(position == period * (count // run) + count % run for count, position in enumerate(positions))
        if not regular or period & (period - 1) or _WORD % run or len(positions) < _FEWEST:
            return None
        made = _Bits(emitter, run, period, positions)
        found: dict[int, _Bit] = {}
        for row in rows:
            for start in range(0, len(row), _WORD):
                word = made.word(row[start : start + _WORD], questions)
                if word is None:
                    return None
                found |= {
                    register: _Bit(word, position) for position, register in enumerate(row[start : start + _WORD])
                }
        return [found[register] for register in range(mask.count)]

    def word(self, registers: Sequence[int], questions: Sequence[Question]) -> Value | None:
        """The bits of some registers; None where a bound does not follow their columns."""
        forms: list[tuple[Value, bool, int, bool]] = []
        for question in questions:
            given = [question.offsets[register] for register in registers]
            steps = [offset - given[0] for offset in given]
            positions = self.positions[: len(given)]
            if steps == positions:
                form = _ASCENDING[question.predicate]
                forms.append((question.number, True, form.more - given[0], form.below))
            elif steps == [-position for position in positions]:
                form = _DESCENDING[question.predicate]
                forms.append((question.number, False, form.more + given[0], form.below))
            else:
                return None
        if tuple(forms) not in self.words:
            found = self.emitter.f.all_of(self._part(*form) for form in forms)
            assert found is not None
            self.words[tuple(forms)] = found
        return self.words[tuple(forms)]

    def _part(self, bound: Value, plus: bool, more: int, below: bool) -> Value:
        """Bits of the positions below ±bound + more, or of the others."""
        f = self.emitter.f
        whole, rest = divmod(more, self.period)
        count = self._count(bound, plus, rest)
        count = f.intrinsic("smax", f.add(count, self.run * whole), 0)
        # The machine moves all ones out of a word if it is told to move them farther than that.
        moved = one(f, "shl.b32 $0, $1, $2;", "i32", number(-1, "i32"), count)
        return f.binary("xor", moved, -1) if below else moved

    def _count(self, bound: Value, plus: bool, more: int) -> Value:
        """How many positions there are below ±bound + more, were there positions everywhere."""
        known = self.counts.get((bound, plus, more))
        if known is not None:
            return known
        f = self.emitter.f
        near = f.intrinsic("smin", f.intrinsic("smax", bound, -_FAR), _FAR)
        end = f.add(near if plus else f.binary("sub", number(0, "i32"), near), more)
        periods = f.binary("ashr", end, self.period.bit_length() - 1)
        rest = f.binary("and", end, self.period - 1)
        rest = f.intrinsic("smin", rest, self.run)
        found = f.add(f.times(periods, self.run), rest)
        self.counts[bound, plus, more] = found
        return found


def _rows(layout: Layout, rank: int) -> list[list[int]] | None:
    """The registers of each row that a thread holds, in the order of their columns."""
    if rank != 2:
        return None
    columns = layout.offsets(1)
    rows: dict[int, list[int]] = {}
    for register, row in enumerate(layout.offsets(0)):
        rows.setdefault(row, []).append(register)
    found = [sorted(registers, key=lambda register: columns[register]) for registers in rows.values()]
    shapes = {tuple(columns[register] - columns[row[0]] for register in row) for row in found}
    return found if len(shapes) == 1 else None
