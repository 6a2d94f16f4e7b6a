"""nv level → LLVM text: dots by the tensor cores.

Depth is the outermost loop. What a step needs is loaded one step ahead, if the operand comes straight from shared
memory: then `nv.read` loads nothing itself, and its words are read when the dot asks for them.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TypeAlias

from xdsl.ir import Operation, SSAValue
from xdsl.traits import is_side_effect_free

from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.targets.cuda.emit.emitter import Emitter, emits
from tessera.targets.cuda.emit.shared import MatrixReader, read_now, reader
from tessera.targets.cuda.emit.thread_tiles import ThreadTile, per_word
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.ir.tensor_cores import INSTRUCTIONS, MmaInstruction
from tessera.targets.cuda.ir.types import layout_of
from tessera.targets.cuda.ptx.inline import asm
from tessera.targets.llvm.text import Value, number

Words: TypeAlias = list[Value]

_UPPER = -(1 << 13)
"""The bits of an f32 that tf32 has, as a mask."""
_TRIFLE = 2.0**-40


@emits(nv.ReadOp)
def _read(emitter: Emitter, op: nv.ReadOp) -> None:
    found = reader(emitter, op) if _waits(op) else None
    if found is None:
        read_now(emitter, op)
    else:
        emitter.values[op.result] = found


def _waits(op: nv.ReadOp) -> bool:
    """Whether only dots read the tile, before anything is written: then they load what they need."""
    users = {use.operation for use in op.result.uses}
    if not users or not all(isinstance(user, nv.MmaOp) and user.parent is op.parent for user in users):
        return False
    following: Operation | None = op.next_op
    while following is not None and users:
        users.discard(following)
        if not isinstance(following, nv.ReadOp) and not is_side_effect_free(following):
            break
        following = following.next_op
    return not users


class _Operand:
    """One operand of a dot, as words: those of one step at a time."""

    def __init__(self, emitter: Emitter, value: SSAValue, axis: int) -> None:
        self.emitter, self.axis = emitter, axis
        self.dtype, self.layout = tile_dtype(value), layout_of(value)
        self.depth = tile_type(value).get_shape()[axis]
        self.source: MatrixReader | ThreadTile = emitter.values[value]
        self.bits = 8 * self.dtype.storage.itemsize
        self.side = max(1, 32 // self.bits)
        """Elements to a word."""
        self._depths = self.layout.offsets(axis)[:: self.side]
        self._reach = self.layout.reach(axis)

    def word(self, index: int) -> Value:
        """Elements of one word; zeros where the tile ends."""
        f, source = self.emitter.f, self.source
        if isinstance(source, MatrixReader) or per_word(self.dtype):
            found = source.word(index)
        else:
            found = source.element(index)
            found = f.convert("bitcast", found, "i32") if self.bits == 32 else found
        first = self._depths[index]
        if first + self._reach + self.side <= self.depth:
            return found
        left = f.binary("sub", number(self.depth - first, "i32"), self.emitter.base(self.layout, self.axis))
        if self.depth % self.side == 0:
            inside = f.compare("sgt", left, 0)
            return f.select(inside, found, 0)
        kept = f.times(f.intrinsic("smin", f.intrinsic("smax", left, 0), 4), self.bits)
        bits = f.binary("shl", number(1, "i64"), f.convert("zext", kept, "i64"))
        return f.binary("and", found, f.convert("trunc", f.subtract(bits, 1), "i32"))


@emits(nv.MmaOp)
def _mma(emitter: Emitter, op: nv.MmaOp) -> None:
    left, right = _Operand(emitter, op.a, 1), _Operand(emitter, op.b, 0)
    dtype = tile_dtype(op.c)
    instruction = INSTRUCTIONS[left.dtype.base, right.dtype.base, dtype.base]
    total = emitter.tile(op.c)
    accumulators = total.words() if per_word(dtype) else total.elements()
    if instruction.splits:
        _Split(emitter, instruction, left, right, accumulators).run()
    elif left.bits == 64:
        _Double(emitter, instruction, left, right, accumulators).run()
    else:
        _Mma(emitter, instruction, left, right, accumulators).run()
    if per_word(dtype):
        emitter.bind(op.result, words=accumulators)
    else:
        emitter.bind(op.result, accumulators)


class _Mma:
    """Writes the instructions of one dot; `accumulators` becomes its result."""

    def __init__(
        self, emitter: Emitter, instruction: MmaInstruction, left: _Operand, right: _Operand, accumulators: Words
    ) -> None:
        self.emitter, self.instruction, self.left, self.right, self.accumulators = (
            emitter,
            instruction,
            left,
            right,
            accumulators,
        )
        # Words of an operand that lie between two steps, and between two rows or columns of matrices.
        self.steps = -(-left.depth // (8 * left.side))
        self.rows = left.layout.count // (4 * left.side * self.steps)
        self.columns = right.layout.count // (2 * right.side * self.steps)
        self.share = len(accumulators) // (self.rows * self.columns)

    def run(self) -> None:
        ahead = self.fetched(0)
        for step in range(self.steps):
            lefts, rights = ahead
            if step + 1 < self.steps:
                ahead = self.fetched(step + 1)
            for row in range(self.rows):
                # There and back again: one operand of each instruction is that of the one before.
                columns = range(self.columns) if row % 2 == 0 else reversed(range(self.columns))
                for column in columns:
                    first = self.share * (column + self.columns * row)
                    part = slice(first, first + self.share)
                    self.accumulators[part] = self.multiplied(lefts[row], rights[column], self.accumulators[part])

    def fetched(self, step: int) -> tuple[list[Words], list[Words]]:
        """The words of both operands for one step, by rows and by columns."""
        lefts = [
            [self.left.word(4 * (step + self.steps * row) + index) for index in range(4)] for row in range(self.rows)
        ]
        rights = [
            [self.right.word(2 * (step + self.steps * column) + index) for index in range(2)]
            for column in range(self.columns)
        ]
        return lefts, rights

    def multiplied(self, left: Words, right: Words, accumulators: Words) -> Words:
        return self.instructed([*left, *right, *accumulators], len(left), len(right))

    def instructed(self, arguments: Words, left: int, right: int) -> Words:
        """One instruction."""
        count = len(arguments) - left - right
        bounds = [0, count, count + left, count + left + right, 2 * count + left + right]
        groups = [
            "{" + ", ".join(f"${index}" for index in range(first, last)) + "}" for first, last in pairwise(bounds)
        ]
        return asm(
            self.emitter.f,
            f"mma.sync.aligned.{self.instruction.name} {', '.join(groups)};",
            returns=[arguments[-1].type] * count,
            arguments=arguments,
            convergent=True,
        )


class _Split(_Mma):
    """f32 by tf32: each number is a sum of two, and three of the four products count.

    Tensor cores truncate sums where they should round them. So each step's products are added up by themselves, and
    rounded into the accumulators afterwards.
    """

    def fetched(self, step: int) -> tuple[list[Words], list[Words]]:
        lefts, rights = super().fetched(step)
        return [self._parts(words) for words in lefts], [self._parts(words) for words in rights]

    def _parts(self, words: Words) -> Words:
        """The upper bits of some numbers, and what they leave."""
        f = self.emitter.f
        uppers = [f.binary("and", word, _UPPER) for word in words]
        return [*uppers, *(self._rest(word, upper) for word, upper in zip(words, uppers, strict=True))]

    def _rest(self, word: Value, upper: Value) -> Value:
        """The rest of a number, and a trifle more: never 0, which would make NaN of the other side's infinity.

        Of an infinity all of it is left, for the same reason.
        """
        f = self.emitter.f
        whole, most = (f.convert("bitcast", value, "float") for value in (word, upper))
        rest = f.intrinsic("fma", whole, _TRIFLE, f.binary("fsub", whole, most))
        endless = f.compare("oeq", f.intrinsic("fabs", whole), float("inf"))
        return f.convert("bitcast", f.select(endless, whole, rest), "i32")

    def multiplied(self, left: Words, right: Words, accumulators: Words) -> Words:
        parts = [number(0.0, "float")] * len(accumulators)
        for first, second in ((left[4:], right[:2]), (left[:4], right[2:]), (left[:4], right[:2])):
            parts = self.instructed([*first, *second, *parts], 4, 2)
        return [self.emitter.f.binary("fadd", total, part) for total, part in zip(accumulators, parts, strict=True)]


class _Double(_Mma):
    """f64: half the rows and a quarter of the depth to an instruction."""

    def multiplied(self, left: Words, right: Words, accumulators: Words) -> Words:
        found: Words = []
        for half in range(2):
            part = accumulators[2 * half : 2 * half + 2]
            for step in range(2):
                part = self.instructed([left[half + 2 * step], right[step], *part], 1, 1)
            found += part
        return found
