"""Floats of 8 and 16 bits as f32, and back: two to an instruction where there is one.

NaN that comes out of the machine's own casts has bits of its own. Otherwise results are those of docs/numerics.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from xdsl.ir import SSAValue

from tessera.dtypes.types import NO_POLICY, DType, bf16, f8e4m3, f8e5m2, f16, f32, saturate
from tessera.targets.cuda.emit.emitter import Emitter
from tessera.targets.cuda.emit.thread_tiles import ThreadTile, part_of, unpacked
from tessera.targets.cuda.ptx.inline import asm, one
from tessera.targets.llvm import casts, elements
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
