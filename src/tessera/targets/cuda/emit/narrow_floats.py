"""Floats of 8 and 16 bits as f32, and back: two to an instruction where there is one. Whole numbers as floats, by bits.

NaN that comes out of the machine's own casts has bits of its own. Otherwise results are those of docs/numerics.md.

The unit that converts numbers gives results late: a warp that has a scheduler nearly to itself waits for each. So casts
that are marked are put together by instructions of fixed latency: a number's bits become the lowest of an f32 whose
unit in the last place is 1, and what is too much is subtracted: exact, as all numbers below 2^23 are. Halves of bytes
are taken out of whole words, and fit a bf16 or f16 that counts in ones: two of them are in a word, and so are two
products of bf16 or f16.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from xdsl.ir import SSAValue

from tessera.dtypes import types as dt
from tessera.dtypes.types import NO_POLICY, DType, bf16, f8e4m3, f8e5m2, f16, f32, saturate
from tessera.ir.tile import dialect as tile
from tessera.targets.cuda.emit.emitter import Emitter
from tessera.targets.cuda.emit.thread_tiles import ThreadTile, part_of, per_word, unpacked
from tessera.targets.cuda.ir.layouts import Layout
from tessera.targets.cuda.ir.types import layout_of
from tessera.targets.cuda.ptx.inline import asm, one
from tessera.targets.llvm import casts, elements
from tessera.targets.llvm.emitter_attributes import BITWISE
from tessera.targets.llvm.text import Value, number

_NAMES: Mapping[DType, str] = {f8e4m3: "e4m3x2", f8e5m2: "e5m2x2"}
_OVERFLOW: Mapping[DType, tuple[str, float, int]] = {f8e4m3: ("ole", 464.0, 0x7F), f8e5m2: ("ult", 61440.0, 0x7C)}
"""The largest finite number, and the code of larger ones. The machine's casts clamp; a tie at the limit is even."""


def has_eights(emitter: Emitter) -> bool:
    """Whether the machine casts 8-bit floats."""
    return emitter.machine >= 89


def closes(emitter: Emitter, dtype: DType) -> bool:
    """Whether f32 becomes such elements by instructions of the machine, under the type's policy."""
    # The accumulator's type does not matter here.
    policy = replace(dtype.policy, accum=None)
    if dtype.base in _NAMES:
        return has_eights(emitter) and policy in (NO_POLICY, saturate)
    return dtype.base in (bf16, f16) and policy == NO_POLICY


def opened(emitter: Emitter, tile: ThreadTile, register: int) -> Value:
    """An element of a tile as f32; elements that are the same value are opened once."""
    f, dtype = emitter.f, tile.dtype
    if dtype is bf16 and tile.has_words:
        word, upper = tile.word(register // 2), register % 2 == 1

        def of_word() -> Value:
            opcode, by = ("and", -0x10000) if upper else ("shl", 16)
            return f.convert("bitcast", f.binary(opcode, word, by), "float")

        return emitter.once((dtype, word, upper), of_word)
    if dtype in _NAMES and has_eights(emitter) and tile.has_words:
        word, index = tile.word(register // 4), register % 4
        pair = emitter.once((dtype, word, index // 2), lambda: _halves(emitter, dtype, word, index // 2))
        return emitter.once((dtype, word, index, "f32"), lambda: _of_half(emitter, pair, index % 2))
    value = tile.element(register)
    return emitter.once((dtype, value), lambda: elements.decode(f, value, dtype, emitter.level))


def _of_half(emitter: Emitter, pair: Value, index: int) -> Value:
    f = emitter.f
    return f.convert("fpext", f.convert("bitcast", part_of(f, pair, index, 16), "half"), "float")


def _halves(emitter: Emitter, dtype: DType, word: Value, index: int) -> Value:
    """Two 8-bit floats of a word as f16, in a word."""
    f = emitter.f
    return one(f, f"cvt.rn.f16x2.{_NAMES[dtype]} $0, $1;", "i32", part_of(f, word, index, 16))


def bind_rounded(emitter: Emitter, result: SSAValue, values: Sequence[Value], wide: DType, dtype: DType) -> None:
    """Binds values of f32 or f64 as a tile, rounded into its type under its policy."""
    if wide is f32 and closes(emitter, dtype):
        _bind_pairs(emitter, result, dtype, values)
        return
    if dtype is wide:
        emitter.bind(result, values)
        return
    known = {value: casts.cast(emitter.f, value, wide, dtype, emitter.level) for value in dict.fromkeys(values)}
    emitter.bind(result, [known[value] for value in values])


def _bind_pairs(emitter: Emitter, result: SSAValue, dtype: DType, values: Sequence[Value]) -> None:
    known: dict[tuple[Value, ...], Value] = {}

    def pair(first: int) -> Value:
        low, high = values[first], values[min(first + 1, len(values) - 1)]
        if (low, high) not in known:
            known[low, high] = _pair(emitter, dtype, low, high)
        return known[low, high]

    pairs = [pair(first) for first in range(0, len(values), 2)]
    f, count = emitter.f, len(values)
    if dtype.base in (bf16, f16):
        if count % 2 == 0:
            emitter.bind(result, words=pairs)
            return
        halves = [part for word in pairs for part in unpacked(f, word, 2)]
        emitter.bind(result, halves[:count])
    elif count % 4 == 0:
        joined = zip(pairs[::2], pairs[1::2], strict=True)
        emitter.bind(result, words=[one(f, "mov.b32 $0, {$1, $2};", "i32", low, high) for low, high in joined])
    else:
        bytes_ = [part for codes in pairs for index in (0, 1) for part in [part_of(f, codes, index, 8)]]
        emitter.bind(result, bytes_[:count])


def _pair(emitter: Emitter, dtype: DType, low: Value, high: Value) -> Value:
    """Two f32 values as one word, or as one half of a word."""
    f = emitter.f
    if dtype.base in (bf16, f16):
        # The instruction puts its first operand into the upper half.
        return one(f, f"cvt.rn.{dtype.base}x2.f32 $0, $2, $1;", "i32", low, high)
    codes = asm(f, f"cvt.rn.satfinite.{_NAMES[dtype.base]}.f32 $0, $2, $1;", returns=["i16"], arguments=[low, high])[0]
    if dtype.policy.saturate:
        return codes
    predicate, limit, code = _OVERFLOW[dtype.base]
    for index, value in enumerate((low, high)):
        inside = f.compare(predicate, f.intrinsic("fabs", value), limit)
        beyond = number(code << (8 * index), "i16")
        sign = number((0x80 if index == 0 else 0x8000) | (0xFF00 if index == 0 else 0xFF), "i16")
        codes = f.select(inside, codes, f.binary("or", f.binary("and", codes, sign), beyond))
    return codes


# Whole numbers, by their bits

_UNIT = 2.0**23
"""An f32 from here to twice as much counts in ones."""
_HIGHEST, _OTHERS = 0x4B000000, 0x7650
"""Its exponent, and the bytes that are the upper three of the second operand of prmt."""
_AND_XOR = "lop3.b32 $0, $1, $2, $3, 0x6a;"
"""The first and the second, xored with the third."""
_PAIRS = {bf16: (0x4300, "bf16x2"), f16: (0x6400, "f16x2")}
"""Floats of 16 bits that count in ones up from a power of two: that number, and how PTX spells two of them."""
_BYTES = {dt.i8: 128, dt.u8: 0}
_HALVES = {dt.i4: 8, dt.u4: 0}
"""What is added to numbers, so that none is below 0: that is their highest bit, flipped, where they have a sign."""


def emit_from_bits(emitter: Emitter, op: tile.EwOp, operands: Sequence[ThreadTile]) -> bool:
    """Casts that are marked, of bytes, and of halves where they have been unpacked."""
    result, (source, *_) = op.result_dtype, operands
    if BITWISE not in op.attributes or op.fn.data != "cast" or op.seed is not None or not result.is_float:
        return False
    if source.dtype.base in _HALVES and result.base in _PAIRS and result.policy == NO_POLICY:
        words = _pairs_of_halves(emitter, op, source.dtype, result.base)
        if words is not None:
            emitter.bind(op.result, words=words)
            return True
    if source.dtype.base in _BYTES:
        found = _of_bytes(emitter, source, _BYTES[source.dtype.base])
    else:
        found = _of_halves(emitter, op, source.dtype)
    if found is None:
        return False
    if result.base is f32:
        emitter.bind(op.result, found)
    elif result.base is bf16 and result.policy == NO_POLICY and len(found) % 2 == 0:
        # They are exact: the upper halves are all there is of them.
        f, pairs = emitter.f, zip(found[::2], found[1::2], strict=True)
        bits = [(f.convert("bitcast", low, "i32"), f.convert("bitcast", high, "i32")) for low, high in pairs]
        words = [one(f, "prmt.b32 $0, $1, $2, 0x7632;", "i32", low, high) for low, high in bits]
        emitter.bind(op.result, words=words)
    else:
        bind_rounded(emitter, op.result, found, f32, result)
    return True


def _of_bytes(emitter: Emitter, source: ThreadTile, added: int) -> list[Value] | None:
    if not source.packs:
        return None
    words = [_biased(emitter, word, added) for word in source.words()]
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
            known[index] = _biased(emitter, f.binary("and", moved, 0x0F0F0F0F), added)
        numbers.append(_number(emitter, known[index], register % ways, added))
    return numbers


def _pairs_of_halves(emitter: Emitter, op: tile.EwOp, dtype: DType, result: DType) -> list[Value] | None:
    """Halves of bytes as words of two floats each; None where the two are not the same half of neighbouring bytes."""
    unpack = op.operands_[0].owner
    if not isinstance(unpack, tile.UnpackOp):
        return None
    source, axis = emitter.tile(unpack.operand), unpack.axis.value.data
    layout = layout_of(unpack.result)
    if not source.packs or not _is_whole(layout, axis) or layout.count % 2:
        return None
    places = list(_places(source.layout, layout, axis, len(source.shape)))
    pairs = list(zip(places[::2], places[1::2], strict=True))
    if not all(low[0] % 2 == 0 and high == (low[0] + 1, low[1]) for low, high in pairs):
        return None
    f, added, (exponent, unit) = emitter.f, _HALVES[dtype.base], _PAIRS[result]
    ways, known = per_word(source.dtype), dict[int, Value]()
    found: list[Value] = []
    for (byte, half), _ in pairs:
        index, inside = divmod(byte, ways)
        if index not in known:
            # Neighbouring bytes come 16 bits apart, so that one shift is for both.
            known[index] = one(f, "prmt.b32 $0, $1, $1, 0x3120;", "i32", source.word(index))
        by = 4 * half + 8 * (inside // 2)
        moved = f.binary("lshr", known[index], by) if by else known[index]
        less = number((exponent + added) * 0x00010001, "i32")
        bits = one(f, _AND_XOR, "i32", moved, number(0x000F000F, "i32"), less)
        found.append(one(f, f"sub.rn.{unit} $0, $1, $2;", "i32", bits, less))
    return found


def emit_packed_product(emitter: Emitter, op: tile.EwOp, operands: Sequence[ThreadTile]) -> bool:
    """Products of bf16 or f16 that are marked, two to an instruction, which rounds once as one in f32 would."""
    result = op.result_dtype
    if BITWISE not in op.attributes or op.fn.data != "mul" or op.seed is not None or result.policy != NO_POLICY:
        return False
    if result not in _PAIRS or any(operand.dtype is not result or not operand.packs for operand in operands):
        return False
    f, (_, unit) = emitter.f, _PAIRS[result]
    known: dict[tuple[Value, ...], Value] = {}
    for pair in zip(*(operand.words() for operand in operands), strict=True):
        if pair not in known:
            known[pair] = one(f, f"mul.rn.{unit} $0, $1, $2;", "i32", *pair)
    words = [known[pair] for pair in zip(*(operand.words() for operand in operands), strict=True)]
    emitter.bind(op.result, words=words)
    return True


def _is_whole(layout: Layout, axis: int) -> bool:
    """Whether a thread has both halves of its bytes."""
    return not any(digit.axis == axis and digit.step == 1 and digit.size > 1 for digit in layout.threads)


def _places(source: Layout, result: Layout, axis: int, rank: int) -> Iterator[tuple[int, int]]:
    """For each register of the halves that of its byte, and which half it is."""
    known = {place: register for register, place in enumerate(zip(*map(source.offsets, range(rank)), strict=True))}
    for place in zip(*map(result.offsets, range(rank)), strict=True):
        halved, half = divmod(place[axis], 2)
        yield known[*place[:axis], halved, *place[axis + 1 :]], half


def _biased(emitter: Emitter, word: Value, added: int) -> Value:
    """Each byte of a word plus a number that is its highest bit."""
    return emitter.f.binary("xor", word, added * 0x01010101) if added else word


def _number(emitter: Emitter, word: Value, index: int, added: int) -> Value:
    f = emitter.f
    bits = one(f, f"prmt.b32 $0, $1, $2, {_OTHERS | index};", "i32", word, number(_HIGHEST, "i32"))
    return f.binary("fadd", f.convert("bitcast", bits, "float"), -(_UNIT + added))
