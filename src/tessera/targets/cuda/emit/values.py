"""nv level → LLVM text: tiles in registers, element by element, the same registers with other axes, and half bytes."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from tessera.dtypes.types import i32, i64
from tessera.errors import CompileError
from tessera.ir.common.locations import span_of
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.targets.cuda.emit.arithmetic import emit_elementwise
from tessera.targets.cuda.emit.emitter import Emitter, emits
from tessera.targets.cuda.emit.positions import is_bounded, picked_from
from tessera.targets.cuda.emit.thread_tiles import Affine, ThreadTile, per_word
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.ir.layouts import Layout
from tessera.targets.cuda.ir.types import layout_of
from tessera.targets.llvm import casts, elements
from tessera.targets.llvm.literals import folded, literal
from tessera.targets.llvm.text import Value, number


@emits(tile.FullOp)
def _full(emitter: Emitter, op: tile.FullOp) -> None:
    value, count = emitter.number(op.value), layout_of(op.result).count
    if tile_dtype(op.result) in (i32, i64):
        emitter.bind(op.result, affine=Affine(value, (0,) * count, is_bounded(op.value)))
    else:
        emitter.bind(op.result, [value] * count)


@emits(tile.IotaOp)
def _iota(emitter: Emitter, op: tile.IotaOp) -> None:
    f, layout, dtype, axis = emitter.f, layout_of(op.result), tile_dtype(op.result), op.axis.value.data
    offsets, start, own = layout.offsets(axis), emitter.number(op.base), emitter.base(layout, axis)
    # Whole numbers wrap the same way whether they are cut before or after they are counted.
    narrow = dtype.bits in (8, 16, 32)
    type_ = f"i{dtype.bits}" if narrow else "i64"
    first = folded(f, "add", _resized(emitter, start, type_), _resized(emitter, own, type_))
    if dtype in (i32, i64):
        emitter.bind(op.result, affine=Affine(first, tuple(offsets), is_bounded(op.base)))
        return

    def at(offset: int) -> Value:
        counted = f.add(first, offset)
        return counted if narrow else casts.cast(f, counted, i64, dtype, emitter.level)

    made = {offset: at(offset) for offset in sorted(set(offsets))}
    emitter.bind(op.result, [made[offset] for offset in offsets])


def _resized(emitter: Emitter, value: Value, type_: str) -> Value:
    """An offset, which has a sign, or the thread's part of one, which has none, in another width."""
    known, have, want = literal(value), int(value.type[1:]), int(type_[1:])
    if known is not None:
        return number(known, type_)
    return emitter.f.convert("trunc" if want < have else "sext", value, type_)


@emits(tile.EwOp)
def _elementwise(emitter: Emitter, op: tile.EwOp) -> None:
    operands = [emitter.tile(operand) for operand in op.operands_]
    for operand in operands:
        check_alike(op, operand.layout, layout_of(op.result))
    emit_elementwise(emitter, op, operands)


# The same registers, with other axes


def check_alike(op: Operation, source: Layout, result: Layout) -> None:
    """Refuses operands whose registers hold other elements than the result's."""
    if source != result and Layout.of(source.threads, source.registers) != Layout.of(result.threads, result.registers):
        raise unlike(op, source, result)


def unlike(op: Operation, source: Layout, result: Layout) -> CompileError:
    return CompileError(f"{op.name} from layout {source} to {result} needs nv.convert", span=span_of(op.location))


@emits(tile.ExpandOp)
def _expand(emitter: Emitter, op: tile.ExpandOp) -> None:
    axis, rank = op.axis.value.data, tile_type(op.operand).get_num_dims()
    reseen(emitter, op, emitter.tile(op.operand), op.result, [axis_ + (axis_ >= axis) for axis_ in range(rank)])


@emits(tile.BroadcastOp)
def _broadcast(emitter: Emitter, op: tile.BroadcastOp) -> None:
    source, result = tile_type(op.operand).get_shape(), tile_type(op.result).get_shape()
    axes = [axis if source[axis] == result[axis] else None for axis in range(len(source))]
    reseen(emitter, op, emitter.tile(op.operand), op.result, axes)


@emits(tile.TransOp)
def _transpose(emitter: Emitter, op: tile.TransOp) -> None:
    permutation = list(op.permutation.iter_values())
    axes = [permutation.index(axis) for axis in range(len(permutation))]
    reseen(emitter, op, emitter.tile(op.operand), op.result, axes)


def reseen(emitter: Emitter, op: Operation, source: ThreadTile, result: SSAValue, axes: Sequence[int | None]) -> None:
    """Binds a tile whose registers are those of another: axis `i` of that is `axes[i]` of this, or repeated."""
    layout = layout_of(result)
    picked = registers_of(source.layout, layout, tile_type(result).get_shape(), axes)
    if picked is None:
        raise unlike(op, source.layout, layout)
    if source.affine is not None:
        emitter.bind(result, affine=picked_from(source.affine, picked))
        return
    if source.questions is not None:
        emitter.bind(result, questions=tuple(asked.seen_through(picked) for asked in source.questions))
        return
    _bind_picked(emitter, result, source, picked)


def _bind_picked(emitter: Emitter, result: SSAValue, source: ThreadTile, picked: Sequence[int]) -> None:
    """Binds a tile of some of another one's registers, in whole words where they are."""
    ways = per_word(source.dtype)
    if source.has_words and ways and source.packs and len(picked) % ways == 0:
        groups = [picked[first : first + ways] for first in range(0, len(picked), ways)]
        if all(group[0] % ways == 0 and group == list(range(group[0], group[0] + ways)) for group in groups):
            emitter.bind(result, words=[source.word(group[0] // ways) for group in groups])
            return
    emitter.bind(result, [source.element(register) for register in picked])


@emits(nv.RowsOp)
def _rows(emitter: Emitter, op: nv.RowsOp) -> None:
    source, layout, shape = emitter.tile(op.operand), layout_of(op.result), tile_type(op.result).get_shape()
    axes = range(len(shape))
    known = _by_coordinates(source.layout, len(axes))
    picked: list[int] = []
    for offsets in _coordinates(layout, axes):
        wanted = list(offsets)
        wanted[op.axis.value.data] += op.first.value.data
        picked.append(known[tuple(wanted)])
    _bind_picked(emitter, op.result, source, picked)


def registers_of(source: Layout, result: Layout, shape: Sequence[int], axes: Sequence[int | None]) -> list[int] | None:
    """For each register of the result the source's that holds the same element; None where threads would have to meet.

    `shape` is the result's. Registers that never hold an element of the tile get any. Along an axis of which all
    threads hold the one element there is, nothing has to agree.
    """
    axes = [None if source.coverage(axis) == 1 else target for axis, target in enumerate(axes)]
    for axis, target in enumerate(axes):
        mine = [] if target is None else _thread_digits(result, target)
        if _thread_digits(source, axis) != mine:
            return None
    known = _by_coordinates(source, len(axes))
    found: list[int] = []
    for offsets in _coordinates(result, range(len(shape))):
        wanted = tuple(0 if target is None else offsets[target] for target in axes)
        register = known.get(wanted)
        if register is None:
            if all(offset < size for offset, size in zip(offsets, shape, strict=True)):
                return None
            register = 0
        found.append(register)
    return found


def _coordinates(layout: Layout, axes: Sequence[int]) -> list[tuple[int, ...]]:
    """The constant parts of each register's coordinates."""
    by_axis = [layout.offsets(axis) for axis in axes]
    return list(zip(*by_axis, strict=True)) if by_axis else [()] * layout.count


def _thread_digits(layout: Layout, axis: int) -> list[tuple[int, int, int]]:
    """The thread's part of coordinates along an axis: (threads below, size, step), plainly spelled."""
    found: list[tuple[int, int, int]] = []
    for digit, below in layout.positions:
        if digit.axis != axis or digit.size == 1:
            continue
        if found:
            last_below, last_size, last_step = found[-1]
            if below == last_below * last_size and digit.step == last_step * last_size:
                found[-1] = (last_below, last_size * digit.size, last_step)
                continue
        found.append((below, digit.size, digit.step))
    return found


# Two elements of 4 bits in a byte


@emits(tile.UnpackOp)
def _unpack(emitter: Emitter, op: tile.UnpackOp) -> None:
    """A thread has the bytes of all its halves; where threads share a byte, each looks which half is its own."""
    f, source, layout, axis = emitter.f, emitter.tile(op.operand), layout_of(op.result), op.axis.value.data
    dtype, shape = tile_dtype(op.result), source.shape
    halved = layout.halved(axis)
    picked = None if halved is None else registers_of(source.layout, halved, shape, range(len(shape)))
    if halved is None or picked is None:
        raise unlike(op, source.layout, layout)
    shared = any(digit.axis == axis and digit.step == 1 and digit.size > 1 for digit in layout.threads)
    mine = f.times(f.binary("and", emitter.base(layout, axis), 1), 4) if shared else number(0, "i32")
    own = f.convert("trunc", mine, "i8") if shared else None
    known, found = _by_coordinates(halved, len(shape)), list[Value]()
    for coordinates in _coordinates(layout, range(len(shape))):
        code = source.element(picked[known[_at(coordinates, axis, coordinates[axis] // 2)]])
        if own is not None:
            code = f.binary("lshr", code, own)
        elif coordinates[axis] % 2:
            code = f.binary("lshr", code, 4)
        found.append(elements.to_register(f, f.binary("and", code, 15), dtype))
    emitter.bind(op.result, found)


@emits(tile.PackOp)
def _pack(emitter: Emitter, op: tile.PackOp) -> None:
    f, source, layout, axis = emitter.f, emitter.tile(op.operand), layout_of(op.result), op.axis.value.data
    doubled, shape = layout.doubled(axis), source.shape
    picked = registers_of(source.layout, doubled, shape, range(len(shape)))
    if picked is None:
        raise unlike(op, source.layout, layout)
    known, found = _by_coordinates(doubled, len(shape)), list[Value]()
    for coordinates in _coordinates(layout, range(len(shape))):
        low, high = (
            f.binary("and", source.element(picked[known[_at(coordinates, axis, 2 * coordinates[axis] + half)]]), 15)
            for half in (0, 1)
        )
        found.append(f.binary("or", low, f.binary("shl", high, 4)))
    emitter.bind(op.result, found)


def _by_coordinates(layout: Layout, rank: int) -> dict[tuple[int, ...], int]:
    """The first register at each of a thread's places."""
    found: dict[tuple[int, ...], int] = {}
    for register, offsets in enumerate(_coordinates(layout, range(rank))):
        found.setdefault(offsets, register)
    return found


def _at(coordinates: tuple[int, ...], axis: int, place: int) -> tuple[int, ...]:
    return (*coordinates[:axis], place, *coordinates[axis + 1 :])
