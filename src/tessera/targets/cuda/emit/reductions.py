"""nv level → LLVM text: reductions. Registers first, then lanes by shuffles, then warps through shared memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce as folded_by
from math import gcd, prod

from tessera.dtypes.types import DType
from tessera.ir.common import reductions
from tessera.ir.tile import dialect as tile
from tessera.targets.cuda.emit.emitter import Emitter, emits
from tessera.targets.cuda.emit.thread_tiles import ThreadTile
from tessera.targets.cuda.emit.values import registers_of, reseen
from tessera.targets.cuda.ir.layouts import WARP, Layout
from tessera.targets.cuda.ir.types import layout_of
from tessera.targets.cuda.math import functions
from tessera.targets.cuda.math.machine_floats import MachineFloats
from tessera.targets.cuda.ptx.inline import shuffle
from tessera.targets.llvm import elementwise
from tessera.targets.llvm.text import Function, Value, bits_of, number

Combine = Callable[[Value, Value], Value]

# Of two f32: NaN if either is, and +0 above −0; `top` may miss a NaN.
_ONE_INSTRUCTION = {"max": "maximum", "min": "minimum", "top": "maxnum"}


@emits(tile.ReduceOp)
def _reduce(emitter: Emitter, op: tile.ReduceOp) -> None:
    operand, kind, axis = emitter.tile(op.operand), op.kind.data, op.axis.value.data
    dtype, layout = operand.dtype, operand.layout
    combine = combining(emitter, kind, dtype)
    values = fold_registers(emitter, operand, axis, elementwise.identity(kind, dtype), combine)
    threads = _Threads.of(layout, axis)
    rest = operand.shape[:axis] + operand.shape[axis + 1 :]
    wanted = layout_of(op.result)
    if threads.left and registers_of(layout.without(axis), wanted, rest, range(len(rest))) is None:
        emitter.bind(op.result, _spread(emitter, operand, axis, wanted, values, combine))
        return
    for across in threads.shuffles:
        values = [combine(value, _shuffled(emitter, value, across)) for value in values]
    if threads.left:
        values = _through_memory(emitter, layout, threads, values, dtype, combine)
    made = ThreadTile(emitter, rest, dtype, layout.without(axis), elements=values)
    reseen(emitter, op, made, op.result, range(len(rest)))


def combining(emitter: Emitter, kind: str, dtype: DType) -> Combine:
    """Two partial results of a reduction as one."""

    def combine(a: Value, b: Value) -> Value:
        if kind in _ONE_INSTRUCTION and a.type == "float":
            return emitter.f.intrinsic(_ONE_INSTRUCTION[kind], a, b)
        if kind in functions.WIDE and a.type == "double":
            return functions.WIDE[kind](MachineFloats(emitter.f, "double"), a, b)
        # Multiples that are not marked as rounded may be added as they are.
        fn, top = reductions.TABLE[kind].combine, kind == "top"
        return elementwise.apply(emitter.f, fn, [a, b], [dtype] * 2, dtype, emitter.level, contract=True, nnan=top)

    return combine


def tree(values: Sequence[Value], combine: Combine) -> Value:
    """All values as one, by pairs, so that steps do not wait for each other."""
    while len(values) > 1:
        pairs = [combine(a, b) for a, b in zip(values[::2], values[1::2], strict=False)]
        values = [*pairs, *(values[-1:] if len(values) % 2 else [])]
    return values[0]


WAYS = 4


def _folded(values: Sequence[Value], combine: Combine) -> Value:
    """All values as one, in a few chains: enough for the machine to overlap them, in few registers."""
    chains = [folded_by(combine, values[way::WAYS]) for way in range(min(WAYS, len(values)))]
    return tree(chains, combine)


def fold_registers(emitter: Emitter, operand: ThreadTile, axis: int, neutral: Value, combine: Combine) -> list[Value]:
    """For each register of the result, what this thread has of it; ghosts count for nothing."""
    f, layout, size = emitter.f, operand.layout, operand.shape[axis]
    reach, offsets = layout.reach(axis), layout.offsets(axis)
    within: dict[int, Value] = {}
    groups: dict[int, list[Value]] = {}
    for register, position in enumerate(_positions_without(layout, axis)):
        offset, group = offsets[register], groups.setdefault(position, [])
        if offset >= size:
            continue
        value = operand.element(register)
        if reach + offset >= size:
            if offset not in within:
                within[offset] = f.compare("slt", emitter.base(layout, axis), size - offset)
            value = f.select(within[offset], value, neutral)
        group.append(value)
    return [_folded(group, combine) if group else neutral for _, group in sorted(groups.items())]


def _positions_without(layout: Layout, axis: int) -> list[int]:
    """For each register the number that is left of its own without the digits of an axis."""
    found, below = [0], 1
    for digit in layout.registers:
        counts = digit.axis != axis
        found = [low + (value * below if counts else 0) for value in range(digit.size) for low in found]
        below *= digit.size if counts else 1
    return found


# Threads


@dataclass(frozen=True)
class ThreadPart:
    """A part of the thread's number: the digit above `below` threads, modulo `size`."""

    below: int
    size: int

    def value(self, emitter: Emitter) -> Value:
        f, part = emitter.f, emitter.thread
        if self.below > 1:
            part = f.binary("udiv", part, self.below)
        return f.binary("urem", part, self.size)


@dataclass(frozen=True)
class _Threads:
    """How threads meet along an axis: by shuffles across these lanes, then through memory."""

    shuffles: list[int]
    met: list[ThreadPart]
    """Parts of the thread's number that shuffles have made replicas."""
    left: list[ThreadPart]
    """Parts that are left to meet in memory."""
    others: list[ThreadPart]
    """Parts that tell apart elements of the result."""
    replicas: list[ThreadPart]

    @staticmethod
    def of(layout: Layout, axis: int) -> _Threads:
        made = _Threads([], [], [], [], [])
        for digit, below in layout.positions:
            if digit.axis != axis:
                (made.others if digit.axis >= 0 else made.replicas).append(ThreadPart(below, digit.size))
                continue
            # Lanes are neighbours within a power of two; what remains of the digit lies above them.
            lanes = gcd(digit.size, max(1, WARP // below)) if below & (below - 1) == 0 else 1
            if lanes > 1:
                made.met.append(ThreadPart(below, lanes))
                made.shuffles.extend(below << bit for bit in range(lanes.bit_length() - 1))
            if digit.size > lanes:
                made.left.append(ThreadPart(below * lanes, digit.size // lanes))
        return made


def _shuffled(emitter: Emitter, value: Value, across: int) -> Value:
    return moved_by_words(emitter.f, value, lambda word: shuffle(emitter.f, word, across))


def moved_by_words(f: Function, value: Value, move: Callable[[Value], Value]) -> Value:
    """A value of any width that goes from thread to thread, by instructions for 32 bits."""
    bits = bits_of(value.type)
    if bits == 32:
        return move(value)
    if bits < 32:
        return f.convert("trunc", move(f.convert("zext", value, "i32")), value.type)
    pair = f.op("<2 x i32>", f"bitcast {value} to <2 x i32>")
    for position in (0, 1):
        pair = f.insert(pair, move(f.lane(pair, position)), position)
    return f.op(value.type, f"bitcast {pair} to {value.type}")


def _count(parts: Sequence[ThreadPart]) -> int:
    return prod(part.size for part in parts)


def number_in(emitter: Emitter, parts: Sequence[ThreadPart]) -> Value:
    """The number that parts of the thread's number make by themselves."""
    f, total, below = emitter.f, number(0, "i32"), 1
    for part in parts:
        value = f.times(part.value(emitter), below)
        total = value if below == 1 else f.binary("add", total, value)
        below *= part.size
    return total


def _through_memory(
    emitter: Emitter, layout: Layout, threads: _Threads, values: Sequence[Value], dtype: DType, combine: Combine
) -> list[Value]:
    """Threads that hold parts of the same sums write them to memory; then every thread reads all parts of its sums."""
    f = emitter.f
    type_ = values[0].type
    slot = "i32" if bits_of(type_) < 32 else type_
    item = bits_of(slot) // 8
    ways, others = _count(threads.left), _count(threads.others)
    way, other = number_in(emitter, threads.left), number_in(emitter, threads.others)
    # Neighbours in memory are what one thread reads at once: the parts of a sum where all lanes read the same sum,
    # otherwise sums that a thread has, which keeps lanes out of each other's banks.
    alike = all(part.below >= WARP for part in threads.others)
    side = gcd(ways if alike else len(values), 16 // item)

    def index(sum_: int) -> tuple[int, Value, int]:
        """Of the parts of one sum: a constant, what depends on the thread, and the distance of one part to the next."""
        if alike:
            return sum_ * others * ways, f.times(other, ways), 1
        return sum_ // side * ways * others * side + sum_ % side, f.times(other, side), others * side

    base = emitter.shared_pointer(len(values) * others * ways * item)

    def at(position: Value, constant: int) -> Value:
        return f.at(f.at(base, f.times(position, item)), number(constant * item, "i32"))

    def write() -> None:
        step = 1 if alike else side
        for first in range(0, len(values), step):
            constant, position, distance = index(first)
            position = f.binary("add", position, f.times(way, distance))
            group = [f.convert("zext", value, slot) for value in values[first : first + step]]
            write_parts(emitter, group, at(position, constant), item)

    emitter.meet()
    writes = _is_first(emitter, [*threads.met, *threads.replicas], layout)
    emitter.where(writes, write)
    emitter.meet()
    found: list[Value] = []
    if alike:
        for sum_ in range(len(values)):
            constant, position, _ = index(sum_)
            parts: list[Value] = []
            for part in range(0, ways, side):
                parts += read_parts(emitter, slot, at(position, constant + part), side, item)
            found.append(_folded([f.convert("trunc", part, type_) for part in parts], combine))
        return found
    for first in range(0, len(values), side):
        constant, position, distance = index(first)
        groups = [
            read_parts(emitter, slot, at(position, constant + part * distance), side, item) for part in range(ways)
        ]
        columns = [[f.convert("trunc", part, type_) for part in column] for column in zip(*groups, strict=True)]
        found += [_folded(column, combine) for column in columns]
    return found


def _spread(
    emitter: Emitter, operand: ThreadTile, axis: int, wanted: Layout, values: Sequence[Value], combine: Combine
) -> list[Value]:
    """Sums of threads that meet in memory, as another layout wants them.

    Of lanes that hold parts of the same sums, each goes on with half of them, as long as there are halves: so a step
    takes half as many shuffles as the one before. What is left is written down, and read by who wants it.
    """
    f, layout = emitter.f, operand.layout
    threads, inner = _Threads.of(layout, axis), layout.without(axis)
    rest = operand.shape[:axis] + operand.shape[axis + 1 :]
    steps = [prod(rest[position + 1 :]) for position in range(len(rest))]
    positions = [sum(inner.offset(number_, a) * by for a, by in enumerate(steps)) for number_ in range(inner.count)]
    at = number(0, "i32")
    for position, by in enumerate(steps):
        at = f.binary("add", at, f.times(emitter.base(layout, position if position < axis else position + 1), by))
    lanes, met = list(threads.shuffles), 0
    while lanes and len(values) > 1 and _halves(positions) is not None:
        across, apart, half = lanes.pop(), _halves(positions), len(values) // 2
        assert apart is not None
        upper = f.compare("ne", f.binary("and", emitter.thread, across), 0)
        pairs = list(zip(values[:half], values[half:], strict=True))
        kept = [f.select(upper, high, low) for low, high in pairs]
        given = [f.select(upper, low, high) for low, high in pairs]
        values = [combine(one, _shuffled(emitter, other, across)) for one, other in zip(kept, given, strict=True)]
        at = f.binary("add", at, f.select(upper, number(apart, "i32"), 0))
        positions = positions[:half]
    for across in lanes:
        values = [combine(value, _shuffled(emitter, value, across)) for value in values]
        met |= across
    type_ = values[0].type
    slot = "i32" if bits_of(type_) < 32 else type_
    item, count, ways = bits_of(slot) // 8, prod(rest), _count(threads.left)
    base = emitter.shared_pointer(count * ways * item)

    def pointer(index: Value, constant: int) -> Value:
        return f.at(f.at(base, f.times(index, item)), number(constant * item, "i32"))

    def write() -> None:
        index = f.binary("add", at, f.times(number_in(emitter, threads.left), count))
        for value, position in zip(values, positions, strict=True):
            write_parts(emitter, [f.convert("zext", value, slot)], pointer(index, position), item)

    emitter.meet()
    writes = _is_first(emitter, threads.replicas, layout)
    if met:
        lowest = f.compare("eq", f.binary("and", emitter.thread, met), 0)
        writes = f.all_of((writes, lowest))
    emitter.where(writes, write)
    emitter.meet()
    index = number(0, "i32")
    for position, by in enumerate(steps):
        index = f.binary("add", index, f.times(emitter.base(wanted, position), by))
    found: list[Value] = []
    for register in range(wanted.count):
        constant = sum(wanted.offset(register, position) * by for position, by in enumerate(steps))
        parts = [read_parts(emitter, slot, pointer(index, constant + way * count), 1, item)[0] for way in range(ways)]
        found.append(_folded([f.convert("trunc", part, type_) for part in parts], combine))
    return found


def _halves(positions: Sequence[int]) -> int | None:
    """How far the second half of some positions is from the first; None where they are no such halves."""
    half = len(positions) // 2
    if len(positions) % 2:
        return None
    apart = {high - low for low, high in zip(positions[:half], positions[half:], strict=True)}
    return next(iter(apart)) if len(apart) == 1 else None


def _is_first(emitter: Emitter, parts: Sequence[ThreadPart], layout: Layout) -> Value | None:
    """Whether a thread's number is 0 in all these parts, and it is one of the layout's threads."""
    f = emitter.f
    tests = [f.compare("eq", part.value(emitter), 0) for part in parts if part.size > 1]
    if layout.thread_count < emitter.cooperating:
        tests.append(f.compare("ult", emitter.thread, layout.thread_count))
    return f.all_of(tests)


def write_parts(emitter: Emitter, values: Sequence[Value], pointer: Value, item: int) -> None:
    """Puts neighbours into shared memory."""
    emitter.f.store(emitter.f.together(values), pointer, align=item * len(values))


def read_parts(emitter: Emitter, type_: str, pointer: Value, count: int, item: int) -> list[Value]:
    """Neighbours in shared memory."""
    f = emitter.f
    if count == 1:
        return [f.load(type_, pointer, align=item)]
    vector = f.load(f"<{count} x {type_}>", pointer, align=item * count)
    return [f.lane(vector, index) for index in range(count)]
