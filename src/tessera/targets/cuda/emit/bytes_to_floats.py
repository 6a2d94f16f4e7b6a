"""Whole numbers of at most 8 bits as f32, put together of bits by instructions of fixed latency.

The unit that converts numbers gives results late: a warp that has a scheduler nearly to itself waits for each. Here a
number's bits become the lowest of an f32 whose unit in the last place is 1, and what is too much is subtracted: exact,
as all numbers below 2^23 are. Halves of bytes are taken out of whole words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tessera.dtypes import types as dt
from tessera.dtypes.types import DType, f32
from tessera.ir.tile import dialect as tile
from tessera.targets.cuda.emit.emitter import Emitter
from tessera.targets.cuda.emit.narrow_floats import bind_rounded
from tessera.targets.cuda.emit.thread_tiles import ThreadTile, per_word
from tessera.targets.cuda.ir.layouts import Layout
from tessera.targets.cuda.ir.types import layout_of
from tessera.targets.cuda.ptx.inline import one
from tessera.targets.llvm.emitter_attributes import BITWISE
from tessera.targets.llvm.text import Value, number

_UNIT = 2.0**23
"""An f32 from here to twice as much counts in ones."""
_HIGHEST, _OTHERS = 0x4B000000, 0x7650
"""Its exponent, and the bytes that are the upper three of the second operand of prmt."""
_BYTES = {dt.i8: 128, dt.u8: 0}
_HALVES = {dt.i4: 8, dt.u4: 0}
"""What is added to numbers, so that none is below 0: that turns the highest bit of signed ones."""


def emit_from_bits(emitter: Emitter, op: tile.EwOp, operands: Sequence[ThreadTile]) -> bool:
    """Casts that are marked, of bytes, and of halves where they have been unpacked."""
    result, (source, *_) = op.result_dtype, operands
    if BITWISE not in op.attributes or op.fn.data != "cast" or op.seed is not None or not result.is_float:
        return False
    if source.dtype.base in _BYTES:
        found = _of_bytes(emitter, source, _BYTES[source.dtype.base])
    else:
        found = _of_halves(emitter, op, source.dtype)
    if found is None:
        return False
    if result.base is f32:
        emitter.bind(op.result, found)
    else:
        bind_rounded(emitter, op.result, found, f32, result)
    return True


def _of_bytes(emitter: Emitter, source: ThreadTile, added: int) -> list[Value] | None:
    if not source.packs:
        return None
    words = [_turned(emitter, word, added) for word in source.words()]
    ways = per_word(source.dtype)
    return [_number(emitter, words[register // ways], register % ways, added) for register in range(source.count)]


def _of_halves(emitter: Emitter, op: tile.EwOp, dtype: DType) -> list[Value] | None:
    unpack = op.operands_[0].owner
    if dtype.base not in _HALVES or not isinstance(unpack, tile.UnpackOp):
        return None
    source, axis = emitter.tile(unpack.operand), unpack.axis.value.data
    if not source.packs or not _is_whole(layout_of(unpack.result), axis):
        return None
    f, added, known = emitter.f, _HALVES[dtype.base], dict[tuple[int, int], Value]()
    ways, numbers = per_word(source.dtype), list[Value]()
    for register, half in _places(source.layout, layout_of(unpack.result), axis, len(source.shape)):
        index = register // ways, half
        if index not in known:
            word = source.word(index[0])
            moved = f.binary("lshr", word, 4) if half else word
            known[index] = _turned(emitter, f.binary("and", moved, 0x0F0F0F0F), added)
        numbers.append(_number(emitter, known[index], register % ways, added))
    return numbers


def _is_whole(layout: Layout, axis: int) -> bool:
    """Whether a thread has both halves of its bytes."""
    return not any(digit.axis == axis and digit.step == 1 and digit.size > 1 for digit in layout.threads)


def _places(source: Layout, result: Layout, axis: int, rank: int) -> Iterator[tuple[int, int]]:
    """For each register of the halves that of its byte, and which half it is."""
    known = {place: register for register, place in enumerate(zip(*map(source.offsets, range(rank)), strict=True))}
    for place in zip(*map(result.offsets, range(rank)), strict=True):
        halved, half = divmod(place[axis], 2)
        yield known[*place[:axis], halved, *place[axis + 1 :]], half


def _turned(emitter: Emitter, word: Value, added: int) -> Value:
    """Each byte of a word plus a number that is its highest bit."""
    return emitter.f.binary("xor", word, added * 0x01010101) if added else word


def _number(emitter: Emitter, word: Value, index: int, added: int) -> Value:
    f = emitter.f
    bits = one(f, f"prmt.b32 $0, $1, $2, {_OTHERS | index};", "i32", word, number(_HIGHEST, "i32"))
    return f.binary("fadd", f.convert("bitcast", bits, "float"), -(_UNIT + added))
