"""Thread tiles: what one thread holds of a tile, by register number.

Elements of 8 and 16 bits have two forms: each in a register of its own, or as many as fit packed into words of 32
bits. Memory, casts and matrix instructions speak of words, everything else of elements. Either form is made from the
other when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from tessera.dtypes.types import DType, Kind
from tessera.targets.cuda.ir.layouts import Layout
from tessera.targets.cuda.ptx.inline import one
from tessera.targets.llvm.text import Function, Value, bits_of


def per_word(dtype: DType) -> int:
    """How many elements a word of 32 bits holds; 0 where they are never packed."""
    if dtype.kind is Kind.BOOL or dtype.storage.itemsize > 2 or (dtype.is_integer and dtype.bits < 8):
        return 0
    return 4 // dtype.storage.itemsize


def packed(f: Function, parts: Sequence[Value]) -> Value:
    """Elements of 8 or 16 bits as a word, the first in the lowest bits."""
    return one(f, "mov.b32 $0, {$1, $2};", "i32", *parts) if len(parts) == 2 else joined(f, parts, "i32")


def joined(f: Function, parts: Sequence[Value], type_: str) -> Value:
    """Whole numbers side by side in one of another type, the first in the lowest bits."""
    found = f.convert("zext", parts[0], type_)
    for index, part in enumerate(parts[1:], 1):
        wide = f.convert("zext", part, type_)
        found = f.binary("or", found, f.binary("shl", wide, bits_of(part.type) * index))
    return found


def part_of(f: Function, word: Value, index: int, bits: int) -> Value:
    """So many bits of a word, counted in such parts from the lowest."""
    moved = f.binary("lshr", word, bits * index) if index else word
    return f.convert("trunc", moved, f"i{bits}")


def unpacked(f: Function, word: Value, ways: int) -> list[Value]:
    """The elements of a word."""
    return [part_of(f, word, index, 32 // ways) for index in range(ways)]


class Scoped(Protocol):
    """The function that is being written, and the blocks around the next instruction, by number."""

    f: Function
    scopes: list[int]


class Affine(NamedTuple):
    """Whole numbers as a base, which depends on the thread, and a constant for each register."""

    base: Value
    offsets: tuple[int, ...]
    bounded: bool
    """Whether they are made of sizes and positions, which are far from where numbers wrap."""


class Question(NamedTuple):
    """Of each register, how a number that the thread has compares with a constant."""

    predicate: str
    number: Value
    offsets: tuple[int, ...]

    def seen_through(self, registers: Sequence[int]) -> Question:
        """The same question of other registers."""
        return self._replace(offsets=tuple(self.offsets[register] for register in registers))


class ThreadTile:
    """The registers of one thread.

    Positions, and what is asked of them, are kept as they are made, and written out when they are asked for.
    """

    def __init__(
        self,
        emitter: Scoped,
        shape: Sequence[int],
        dtype: DType,
        layout: Layout,
        *,
        elements: Sequence[Value] | None = None,
        words: Sequence[Value] | None = None,
        affine: Affine | None = None,
        questions: tuple[Question, ...] | None = None,
    ) -> None:
        self.shape = tuple(shape)
        self.dtype = dtype
        self.layout = layout
        self.count = layout.count
        self._emitter = emitter
        self._elements = None if elements is None else list(elements)
        self._words = None if words is None else list(words)
        # What was made from the other form, and in which basic block: others need not come by there.
        self._made: dict[tuple[str, int], tuple[int, Value]] = {}
        self.affine = affine
        self.questions = questions
        assert not (self._elements is None and self._words is None and affine is None and questions is None)
        assert self._elements is None or len(self._elements) == self.count, (layout, len(self._elements))

    @property
    def packs(self) -> bool:
        """Whether its registers fill whole words."""
        ways = per_word(self.dtype)
        return ways > 0 and self.count % ways == 0

    def element(self, register: int) -> Value:
        if self._elements is not None:
            return self._elements[register]
        if self.affine is not None:
            return self._cached("position", self.affine.offsets[register])
        if self.questions is not None:
            alike = [asked.offsets[register] for asked in self.questions]
            first = next(
                index for index in range(register + 1) if [asked.offsets[index] for asked in self.questions] == alike
            )
            return self._cached("truth", first)
        return self._cached("element", register)

    def elements(self) -> list[Value]:
        return [self.element(register) for register in range(self.count)]

    def word(self, index: int) -> Value:
        """Elements `index · n` to `index · n + n − 1` of n to a word, the first in the lowest bits."""
        if self._words is not None:
            return self._words[index]
        return self._cached("word", index)

    def words(self) -> list[Value]:
        return [self.word(index) for index in range(self.count // per_word(self.dtype))]

    @property
    def has_words(self) -> bool:
        return self._words is not None

    def _cached(self, form: str, index: int) -> Value:
        known = self._made.get((form, index))
        if known is not None and known[0] in self._emitter.scopes:
            return known[1]
        make = {"element": self._unpacked, "word": self._packed, "position": self._position, "truth": self._truth}[form]
        found = make(index)
        self._made[form, index] = (self._emitter.scopes[-1], found)
        return found

    def _position(self, offset: int) -> Value:
        assert self.affine is not None
        return self._emitter.f.add(self.affine.base, offset)

    def _truth(self, register: int) -> Value:
        """Whether all that is asked of a register holds."""
        assert self.questions is not None
        f = self._emitter.f
        found = f.all_of(f.compare(asked.predicate, asked.number, asked.offsets[register]) for asked in self.questions)
        assert found is not None
        return found

    def _unpacked(self, register: int) -> Value:
        assert self._words is not None
        ways = per_word(self.dtype)
        return part_of(self._emitter.f, self._words[register // ways], register % ways, 32 // ways)

    def _packed(self, index: int) -> Value:
        ways = per_word(self.dtype)
        return packed(
            self._emitter.f, [self.element(register) for register in range(index * ways, index * ways + ways)]
        )

    # What loops and branches carry

    def flat(self) -> list[Value]:
        return self.words() if self.packs else self.elements()

    @staticmethod
    def flat_count(dtype: DType, layout: Layout) -> int:
        ways = per_word(dtype)
        return layout.count // ways if ways and layout.count % ways == 0 else layout.count

    @staticmethod
    def of_flat(
        emitter: Scoped, shape: Sequence[int], dtype: DType, layout: Layout, values: Sequence[Value]
    ) -> ThreadTile:
        if ThreadTile.flat_count(dtype, layout) != layout.count:
            return ThreadTile(emitter, shape, dtype, layout, words=values)
        return ThreadTile(emitter, shape, dtype, layout, elements=values)
