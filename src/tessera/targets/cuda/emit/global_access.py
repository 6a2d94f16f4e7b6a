"""Where the registers of a tile lie in global memory, and in what pieces they are moved.

Registers that follow each other along an axis are moved together, up to 16 bytes at once, where the axis has stride 1
and addresses are multiples of the piece. What is known of that only when the kernel runs is the same for all threads
and tested once: in front of the kernel where it is about a view, in front of the access where it is about offsets.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.ir import SSAValue

from tessera.dtypes.types import DType
from tessera.ir.tile.types import view_type
from tessera.targets.cuda.emit.divisors import divisor_of, has_aligned_rows, is_natural
from tessera.targets.cuda.emit.emitter import Emitter
from tessera.targets.cuda.ir.layouts import Layout
from tessera.targets.cuda.ir.types import CHUNK
from tessera.targets.cuda.ptx.inline import asm
from tessera.targets.llvm.emitter import ViewDescriptor
from tessera.targets.llvm.literals import folded, literal
from tessera.targets.llvm.text import Value, number

_FARTHEST = 2**31 - 1

Moved = Callable[[], Sequence[Value] | None]


@dataclass(frozen=True)
class Pieces:
    """How registers are moved: `count` of them at once, neighbours along `axis`."""

    axis: int
    count: int
    itemsize: int

    @property
    def bytes(self) -> int:
        return self.count * self.itemsize

    @property
    def in_words(self) -> bool:
        """Whether small elements are moved as words of 32 bits."""
        return self.itemsize < 4 and self.bytes >= 4

    @property
    def units(self) -> int:
        """How many registers of the machine a piece takes."""
        return self.bytes // 4 if self.in_words else self.count

    @staticmethod
    def of(layout: Layout, shape: Sequence[int], dtype: DType, most: int | None = None) -> Pieces:
        """The largest pieces that a layout allows, and that are no more than a hint says."""
        itemsize = dtype.storage.itemsize
        plain = Layout.of(layout.threads, layout.registers)
        if not plain.registers or plain.registers[0].axis < 0 or plain.registers[0].step != 1:
            return Pieces(-1, 1, itemsize)
        first, *others = plain.registers
        axis = first.axis
        steps = [digit.step for digit in (*plain.threads, *others) if digit.axis == axis]
        count = CHUNK // itemsize
        while most is not None and count > most:
            count //= 2
        while count > 1 and any(size % count for size in (first.size, shape[axis], *steps)):
            count //= 2
        # Less than a word is not worth packing.
        return Pieces(axis, count, itemsize) if count * itemsize >= 4 and count > 1 else Pieces(-1, 1, itemsize)


def is_aligned(emitter: Emitter, value: SSAValue, pieces: Pieces) -> Value | None:
    """Whether a view's memory is made of whole pieces: its start, and the steps along other axes; None: it is."""
    if pieces.count == 1 or (pieces.axis == view_type(value).rank.data - 1 and has_aligned_rows(value)):
        return None

    def test() -> Value:
        f, view = emitter.f, emitter.view(value)
        found = f.op("i64", f"ptrtoint {view.pointer} to i64")
        for axis, stride in enumerate(view.strides):
            if axis != pieces.axis:
                found = f.binary("or", found, f.times(stride, view.dtype.storage.itemsize))
        whole, stride = f.divides(pieces.bytes, found), view.strides[pieces.axis]
        return whole if literal(stride) == 1 else f.binary("and", whole, f.compare("eq", stride, 1))

    return emitter.once(("aligned", value, pieces), test)


NEVER = number(False, "i1")


def both(emitter: Emitter, *conditions: Value | None) -> Value | None:
    """All of some conditions; None is one that always holds."""
    return NEVER if NEVER in conditions else emitter.f.all_of(conditions)


def either(emitter: Emitter, a: Value | None, b: Value | None) -> Value | None:
    """One of two conditions, or both."""
    if a is None or b is None:
        return None
    if NEVER in (a, b):
        return b if a == NEVER else a
    return emitter.f.binary("or", a, b)


@dataclass
class Access:
    """One load, store or atomic of a tile at offsets into a view."""

    emitter: Emitter
    source: SSAValue
    offsets: Sequence[SSAValue]
    layout: Layout
    shape: Sequence[int]
    vector: int | None = None
    """The most neighbours that are moved at once."""
    pieces: Pieces = field(init=False)
    view: ViewDescriptor = field(init=False)
    starts: list[Value] = field(init=False)
    base: Value = field(init=False)

    def __post_init__(self) -> None:
        emitter, f = self.emitter, self.emitter.f
        self.view = emitter.view(self.source)
        self.pieces = Pieces.of(self.layout, self.shape, self.view.dtype, self.vector)
        self.starts = [emitter.number(offset) for offset in self.offsets]
        flat = number(0, "i64")
        for axis, start in enumerate(self.starts):
            own = f.convert("zext", emitter.base(self.layout, axis), "i64") if self._varies(axis) else number(0, "i64")
            position = folded(f, "add", start, own)
            flat = folded(f, "add", flat, folded(f, "mul", position, self.view.strides[axis]))
        flat = folded(f, "mul", flat, self.item)
        self.base = f.op(self.view.pointer.type, f"getelementptr i8, {self.view.pointer}, {flat}")

    @property
    def item(self) -> int:
        return self.view.dtype.storage.itemsize

    def _varies(self, axis: int) -> bool:
        """Whether positions along an axis depend on the thread."""
        return any(digit.axis == axis for digit in self.layout.threads)

    # What all threads know alike

    def aligned(self) -> Value | None:
        """Whether pieces can be moved as a whole, wherever they are inside."""
        pieces = self.pieces
        if pieces.count == 1:
            return None
        start = self.starts[pieces.axis]
        known = divisor_of(self.offsets[pieces.axis]) % pieces.count == 0
        f = self.emitter.f
        even = None if known else f.divides(pieces.count, start)
        return both(self.emitter, is_aligned(self.emitter, self.source, pieces), even)

    def within(self) -> Value | None:
        """Whether the whole tile is inside the view."""
        f, tests = self.emitter.f, list[Value | None]()
        for axis, (start, size) in enumerate(zip(self.starts, self.view.sizes, strict=True)):
            extent, known, first = self.shape[axis], literal(size), literal(start)
            if known is not None and first is not None:
                tests.append(None if 0 <= first <= known - extent else NEVER)
                continue
            if not is_natural(self.offsets[axis]):
                tests.append(f.compare("sge", start, 0))
            if known is not None:
                tests.append(f.compare("sle", start, known - extent))
            else:
                # In this order nothing overflows.
                tests.append(f.compare("sle", start, f.subtract(size, extent)))
        return both(self.emitter, *tests)

    def ends_whole(self) -> Value | None:
        """Whether the view ends with a whole piece, so that pieces are inside or outside as a whole."""
        if self.pieces.count == 1 or (self.pieces.axis == len(self.shape) - 1 and has_aligned_rows(self.source)):
            return None
        size = self.view.sizes[self.pieces.axis]
        known = literal(size)
        if known is not None:
            return None if known % self.pieces.count == 0 else NEVER
        return self.emitter.f.divides(self.pieces.count, size)

    def by_paths(self, move: Callable[[Path], Sequence[Value] | None], *, inside: bool) -> Sequence[Value]:
        """Does an access in the quickest way that is right, and gives what it gives.

        Whole tiles without tests, in pieces; then pieces that are tested; then elements that are tested. `inside`
        promises that the tile is inside the view.
        """
        emitter = self.emitter
        aligned, within, whole = self.aligned(), None if inside else self.within(), self.ends_whole()

        def choose(condition: Value | None, then: Moved, otherwise: Moved) -> Sequence[Value]:
            if condition is None or condition == NEVER:
                return (then() if condition is None else otherwise()) or ()
            return emitter.branch(condition, then, otherwise)

        def fast() -> Sequence[Value] | None:
            return move(Path(self, pieces=True, tested=False))

        def edge() -> Sequence[Value] | None:
            return move(Path(self, pieces=True, tested=True))

        def careful() -> Sequence[Value] | None:
            return move(Path(self, pieces=False, tested=within is not None))

        if self.pieces.count == 1:
            return choose(within, fast, careful)
        in_pieces = both(emitter, aligned, either(emitter, within, whole))
        return choose(in_pieces, fast if whole == NEVER else lambda: choose(within, fast, edge), careful)


class Path:
    """One way of doing an access, in a basic block of its own: addresses and predicates by register."""

    def __init__(self, access: Access, *, pieces: bool, tested: bool) -> None:
        self.access = access
        self.count = access.pieces.count if pieces else 1
        self.tested = tested
        self._emitter, self._f = access.emitter, access.emitter.f
        self._offsets = [access.layout.offsets(axis) for axis in range(len(access.starts))]
        self._ghosts = self._emitter.inside(access.layout, access.shape)
        self._pointers: dict[tuple[int, ...], Value] = {}
        self._steps: dict[tuple[int, int], Value] = {}
        self._tests: dict[tuple[int, int], Value] = {}
        self._positions: dict[int, tuple[Value, Value]] = {}
        self._known: dict[tuple[str, str], Value] = {}

    def _fixed_stride(self, axis: int) -> int | None:
        """The bytes between neighbours along an axis, if they are known."""
        if self.count > 1 and axis == self.access.pieces.axis:
            return self.access.item
        stride = literal(self.access.view.strides[axis])
        return None if stride is None else stride * self.access.item

    def address(self, register: int) -> tuple[Value, int]:
        """A pointer, and how many bytes behind it the element lies."""
        known, moving = 0, list[int]()
        for axis, offsets in enumerate(self._offsets):
            stride = self._fixed_stride(axis)
            moving.append(offsets[register] if stride is None else 0)
            known += 0 if stride is None else stride * offsets[register]
        return self._pointer(tuple(moving)), known

    def _pointer(self, offsets: tuple[int, ...]) -> Value:
        """By one step from the element before it along the last axis that it is not at the start of."""
        if not any(offsets):
            return self.access.base
        if offsets not in self._pointers:
            axis = max(axis for axis, offset in enumerate(offsets) if offset)
            before = max(offset for offset in set(self._offsets[axis]) if offset < offsets[axis])
            last = self._pointer((*offsets[:axis], before, *offsets[axis + 1 :]))
            step = self._step(axis, offsets[axis] - before)
            self._pointers[offsets] = self._f.op(last.type, f"getelementptr i8, {last}, {step}")
        return self._pointers[offsets]

    def _step(self, axis: int, count: int) -> Value:
        if (axis, count) not in self._steps:
            self._steps[axis, count] = self._f.times(self.access.view.strides[axis], count * self.access.item)
        return self._steps[axis, count]

    def inside(self, register: int) -> Value | None:
        """Whether an element, or the piece that begins with it, is one of the tile and of the view."""
        found = self._ghosts[register]
        if not self.tested:
            return found
        for axis, offsets in enumerate(self._offsets):
            test = self._test(axis, offsets[register])
            if found is None:
                found = test
            else:
                key = (found.name, test.name)
                if key not in self._known:
                    self._known[key] = self._f.binary("and", found, test)
                found = self._known[key]
        return found

    def _test(self, axis: int, offset: int) -> Value:
        if (axis, offset) not in self._tests:
            position, size = self._position_and_size(axis)
            self._tests[axis, offset] = self._f.compare("ult", self._f.add(position, offset), size)
        return self._tests[axis, offset]

    def _position_and_size(self, axis: int) -> tuple[Value, Value]:
        """The first position along an axis and the view's size, in 32 bits: what is far outside stays outside."""
        if axis not in self._positions:
            access, f = self.access, self._f
            size = self._clamped(access.view.sizes[axis], 0, _FARTHEST)
            lowest = -access.layout.coverage(axis)
            start = self._clamped(access.starts[axis], lowest, _FARTHEST + lowest)
            self._positions[axis] = f.binary("add", start, self._emitter.base(access.layout, axis)), size
        return self._positions[axis]

    def _clamped(self, value: Value, low: int, high: int) -> Value:
        known = literal(value)
        if known is not None:
            return number(min(max(known, low), high), "i32")
        f = self._f
        value = f.intrinsic("smin", f.intrinsic("smax", value, low), high)
        return f.convert("trunc", value, "i32")


# Instructions

_KINDS = {"i8": "b8", "i16": "b16", "i32": "b32", "float": "b32", "i64": "b64", "double": "b64"}
_SUFFIX = {1: "", 2: ".v2", 4: ".v4"}


def _braced(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else "{" + ", ".join(names) + "}"


def read(
    emitter: Emitter,
    type_: str,
    count: int,
    address: tuple[Value, int],
    where: Value | None,
    otherwise: Sequence[Value],
    *,
    constant: bool,
) -> list[Value]:
    """`count` neighbours of a type, or other values where a condition does not hold.

    `constant` says that this memory is not written while the kernel runs.
    """
    f, (pointer, offset) = emitter.f, address
    # Registers have 16 bits at least.
    held = "i16" if type_ == "i8" else type_
    names = [f"${index}" for index in range(count)]
    load = (
        f"ld.global{'.nc' if constant else ''}{_SUFFIX[count]}.{_KINDS[type_]} {_braced(names)}, [${count}+{offset}];"
    )
    arguments = [pointer]
    if where is not None:
        kind = _KINDS[held]
        moves = [f"mov.{kind} {name}, {_bits(value)};" for name, value in zip(names, otherwise, strict=True)]
        load = " ".join([*moves, f"@${count + 1} {load}"])
        arguments.append(where)
    early = where is not None
    found = asm(f, load, returns=[held] * count, arguments=arguments, effects=True, early=early)
    return [f.convert("trunc", value, "i8") for value in found] if type_ == "i8" else found


def _bits(value: Value) -> str:
    """A constant as PTX writes it, whatever its type."""
    if value.type == "float":
        # LLVM spells f32 as the f64 of the same value.
        return f"0x{_float_bits(value.name):08X}"
    return value.name if value.type != "double" else f"0x{value.name[2:]}"


def _float_bits(name: str) -> int:
    wide = struct.unpack("<d", int(name, 16).to_bytes(8, "little"))[0]
    return struct.unpack("<I", struct.pack("<f", wide))[0]


def write(emitter: Emitter, values: Sequence[Value], address: tuple[Value, int], where: Value | None) -> None:
    """Neighbours into memory, where a condition holds."""
    f, (pointer, offset) = emitter.f, address
    kind = _KINDS[values[0].type]
    held = [f.convert("zext", value, "i16") if value.type == "i8" else value for value in values]
    names = [f"${index + 1}" for index in range(len(values))]
    store = f"st.global{_SUFFIX[len(values)]}.{kind} [$0+{offset}], {_braced(names)};"
    arguments = [pointer, *held]
    if where is not None:
        store = f"@${len(arguments)} {store}"
        arguments.append(where)
    asm(f, store, arguments=arguments, effects=True)
