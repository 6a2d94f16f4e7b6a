"""Elementwise work on tiles in registers: what the machine has instructions for, and the shared recipes for the rest.

Work on narrower floats is done in f32: elements are opened, computed with, and closed two at a time. Functions are
those of `functions`, exact to a few units in the last place of f32; ops marked `{approximate}` have shorter forms, and
those marked `{fast}` are one instruction each.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence

from tessera.dtypes.promotion import compute_type
from tessera.dtypes.types import NO_POLICY, DType, bf16, f16, f32, f64, i32, i64, u32, u64
from tessera.errors import TesseraError
from tessera.ir.common import elementwise as table
from tessera.ir.common.locations import span_of
from tessera.ir.tile import dialect as tile
from tessera.targets.cuda.emit.bit_masks import emit_masks
from tessera.targets.cuda.emit.emitter import Emitter
from tessera.targets.cuda.emit.narrow_floats import bind_rounded, emit_from_bits, emit_packed_product, opened
from tessera.targets.cuda.emit.positions import emit_positions
from tessera.targets.cuda.emit.thread_tiles import ThreadTile
from tessera.targets.cuda.math import functions
from tessera.targets.cuda.math.machine_floats import MachineFloats
from tessera.targets.cuda.ptx.inline import one
from tessera.targets.llvm import casts, elementwise, f64_functions
from tessera.targets.llvm.elements import not_a_number
from tessera.targets.llvm.emitter_attributes import APPROXIMATE, ROUNDED, SHORT, TOGETHER
from tessera.targets.llvm.text import Value, number

FAST = "fast"
"""Marks a function that is wanted as one instruction: subnormal numbers are zeros, the last bits are anything."""

Compute = Callable[..., Value]
Rule = Callable[[Emitter, tile.EwOp, Sequence[ThreadTile]], bool]


def emit_elementwise(emitter: Emitter, op: tile.EwOp, operands: Sequence[ThreadTile]) -> None:
    """Emits an op by the first rule that knows it."""
    try:
        for rule in _RULES:
            if rule(emitter, op, operands):
                return
    except TesseraError as error:
        raise error.at(span_of(op.location)) from None


def _each(registers: Iterable[Sequence[Value]], compute: Compute) -> list[Value]:
    """Results computed from the operands of every register; what is asked twice is computed once."""
    known: dict[tuple[Value, ...], Value] = {}
    found: list[Value] = []
    for values in registers:
        given = tuple(values)
        if given not in known:
            known[given] = compute(*given)
        found.append(known[given])
    return found


def _elements(operands: Sequence[ThreadTile]) -> Iterable[Sequence[Value]]:
    return zip(*(operand.elements() for operand in operands), strict=True)


def _all_opened(emitter: Emitter, operand: ThreadTile) -> list[Value]:
    return [opened(emitter, operand, register) for register in range(operand.count)]


# Rows on floats


def _floats(emitter: Emitter, op: tile.EwOp, operands: Sequence[ThreadTile]) -> bool:
    """Rows on floats, which compute in f32 or f64 and round once."""
    dtypes, result = _governed(op, operands), op.result_dtype
    if op.fn.data in ("cast", "select") or op.seed is not None or not all(dtype.is_float for dtype in dtypes):
        return False
    wide = compute_type(dtypes[0].base)
    if op.fn.data == "fma" and (wide is not dtypes[0].base or result.policy.loss_scale is not None):
        return _fused(emitter, op, operands)
    values = [_widened(emitter, operand, dtype) for operand, dtype in zip(operands, dtypes, strict=True)]
    if op.fn.data == "copysign" and dtypes[1].base is f16 and dtypes[1].policy.loss_scale is None:
        values[1] = [_signed_alike(emitter, value) for value in operands[1].elements()]
    found = _each(zip(*values, strict=True), _computes(emitter, op, wide))
    if result.is_float:
        bind_rounded(emitter, op.result, found, wide, result)
    else:
        emitter.bind(op.result, found)
    return True


def _governed(op: tile.EwOp, operands: Sequence[ThreadTile]) -> list[DType]:
    """The types of operands. Tiles have no policy of their own: those of the result's type take the op's."""
    result = op.result_dtype
    return [result if operand.dtype is result.base else operand.dtype for operand in operands]


def _widened(emitter: Emitter, operand: ThreadTile, dtype: DType) -> list[Value]:
    """All elements in the type that is computed in, loss scales undone."""
    if dtype.policy.loss_scale is not None:
        wide = compute_type(dtype.base)
        return [casts.cast(emitter.f, value, dtype, wide, emitter.level) for value in operand.elements()]
    return operand.elements() if dtype.base is f64 else _all_opened(emitter, operand)


def _signed_alike(emitter: Emitter, half: Value) -> Value:
    """An f32 with the sign of an f16, by its bits: a NaN that is converted loses its sign."""
    words = emitter.f.convert("zext", half, "i32")
    return emitter.f.convert("bitcast", emitter.f.binary("shl", words, 16), "float")


def _computes(emitter: Emitter, op: tile.EwOp, wide: DType) -> Compute:
    """The code of an op on values of f32 or f64, which gives one of the same type or a bool."""
    f, fn = emitter.f, op.fn.data
    if wide is f32:
        tables = [functions.FAST] if FAST in op.attributes else []
        tables += [functions.APPROXIMATE] if APPROXIMATE in op.attributes else []
        for known in (*tables, functions.F32):
            if fn in known:
                recipe = known[fn]
                return lambda *values: recipe(MachineFloats(f), *values)
    elif (wide_recipe := f64_functions.F64.get(fn) or functions.WIDE.get(fn)) is not None:
        return lambda *values: wide_recipe(MachineFloats(f, "double"), *values)
    contract = ROUNDED not in op.attributes

    def apply(*values: Value) -> Value:
        dtypes = [wide] * len(values)
        return elementwise.apply(
            f, fn, values, dtypes, table.result_dtype(fn, dtypes), emitter.level, contract=contract
        )

    return apply


def _fused(emitter: Emitter, op: tile.EwOp, operands: Sequence[ThreadTile]) -> bool:
    """a·b + c, rounded once into 16 bits: the machine does just that."""
    dtype, f = operands[0].dtype, emitter.f
    if dtype not in (bf16, f16) or op.result_dtype.policy != NO_POLICY:
        return False

    def fused(kind: str, held: str) -> Compute:
        return lambda *values: one(f, f"fma.rn.{kind} $0, $1, $2, $3;", held, *values)

    if all(operand.packs for operand in operands):
        words = zip(*(operand.words() for operand in operands), strict=True)
        emitter.bind(op.result, words=_each(words, fused(f"{dtype}x2", "i32")))
    else:
        emitter.bind(op.result, _each(_elements(operands), fused(str(dtype), "i16")))
    return True


def _signs(emitter: Emitter, op: tile.EwOp, operands: Sequence[ThreadTile]) -> bool:
    """neg and abs of packed floats: the sign bits of a word at once."""
    (operand, *_), f = operands, emitter.f
    plain = operand.dtype in (bf16, f16) and op.result_dtype.policy == NO_POLICY
    if op.fn.data not in ("neg", "abs") or not plain or not operand.packs or not operand.has_words:
        return False
    opcode, mask = ("xor", -0x7FFF8000) if op.fn.data == "neg" else ("and", 0x7FFF7FFF)
    emitter.bind(op.result, words=[f.binary(opcode, word, mask) for word in operand.words()])
    return True


# Casts

_WHOLE = {i32: "cvt.rzi.s32.f32", u32: "cvt.rzi.u32.f32", i64: "cvt.rzi.s64.f32", u64: "cvt.rzi.u64.f32"}


def _casts(emitter: Emitter, op: tile.EwOp, operands: Sequence[ThreadTile]) -> bool:
    """Casts of what f32 holds exactly; the others are left to the shared recipes."""
    (source, *_), result, f = operands, op.result_dtype, emitter.f
    if op.fn.data != "cast" or op.seed is not None or result.policy.loss_scale is not None:
        return False
    dtype = source.dtype
    if dtype is result:
        emitter.values[op.result] = source
        return True

    if source.affine is not None and result is f32 and APPROXIMATE in op.attributes:
        # The thread's base is converted once; constants are added to that.
        base, offsets = f.convert("sitofp", source.affine.base, "float"), source.affine.offsets
        moved = {offset: f.binary("fadd", base, float(offset)) for offset in sorted(set(offsets))}
        emitter.bind(op.result, [moved[offset] for offset in offsets])
        return True

    def cast(from_: DType, to: DType) -> Compute:
        return lambda *values: elementwise.apply(f, "cast", values, [from_], to, emitter.level)

    if dtype.is_float and compute_type(dtype) is f32:
        wide = _all_opened(emitter, source)
    elif result.is_float and dtype.bits <= 16:
        wide = _each(_elements([source]), cast(dtype, f32))
    else:
        return False
    if result.is_float:
        bind_rounded(emitter, op.result, wide, f32, result)
        return True

    def cut(value: Value) -> Value:
        """The machine cuts, clamps, and makes 0 of NaN; in 64 bits it makes the highest bit of it."""
        if result.bits == 64:
            value = f.select(not_a_number(f, value), number(0.0, "float"), value)
        return one(f, f"{_WHOLE[result.base]} $0, $1;", f"i{result.bits}", value)

    emitter.bind(op.result, _each(zip(wide, strict=True), cut if result.base in _WHOLE else cast(f32, result)))
    return True


# Reciprocals

_SEVERAL = 4
"""Reciprocals that are computed together, of numbers up to 2^31."""


def _reciprocals(emitter: Emitter, op: tile.EwOp, operands: Sequence[ThreadTile]) -> bool:
    """Those that may be computed together: the unit for functions takes long, and products of numbers do not."""
    if op.fn.data != "reciprocal" or TOGETHER not in op.attributes:
        return False
    k, (operand,) = MachineFloats(emitter.f), operands
    values = _all_opened(emitter, operand)
    different, known = list(dict.fromkeys(values)), dict[Value, Value]()
    for first in range(0, len(different), _SEVERAL):
        group = different[first : first + _SEVERAL]
        known.update(zip(group, functions.inverses(k, group), strict=True))
    bind_rounded(emitter, op.result, [known[value] for value in values], f32, op.result_dtype)
    return True


# Division

_SHARES = 4
"""How many registers a divisor has to serve for its inverse to be worth computing."""
_LEAST, _MOST = 2.0**-126, 2.0**126


def _divisions(emitter: Emitter, op: tile.EwOp, operands: Sequence[ThreadTile]) -> bool:
    """a / b where many registers have one b: (a·s) · 1/(b·s), where s keeps all of it within the format's range."""
    result = op.result_dtype
    if op.fn.data != "div" or compute_type(operands[0].dtype) is not f32 or result.policy != NO_POLICY:
        return False
    dividends, divisors = (_all_opened(emitter, operand) for operand in operands)
    if _SHARES * len(set(divisors)) > len(divisors):
        return False
    f, inverses = emitter.f, {divisor: _inverse(emitter, divisor) for divisor in dict.fromkeys(divisors)}

    def divide(a: Value, b: Value) -> Value:
        scale, inverse = inverses[b]
        return f.binary("fmul", a if scale is None else f.binary("fmul", a, scale), inverse)

    found = _each(zip(dividends, divisors, strict=True), divide)
    bind_rounded(emitter, op.result, found, f32, result)
    return True


def _inverse(emitter: Emitter, divisor: Value) -> tuple[Value | None, Value]:
    """s, if it is not 1, and 1/(b·s)."""
    f, unit = emitter.f, number(1.0, "float")
    if divisor.name.startswith("0x"):
        known = abs(struct.unpack("<d", int(divisor.name, 16).to_bytes(8, "little"))[0])
        if _LEAST <= known <= _MOST:
            return None, f.binary("fdiv", unit, divisor)
    size = f.intrinsic("fabs", divisor)
    large = f.compare("ogt", size, _MOST)
    small = f.compare("olt", size, _LEAST)
    scale = f.select(large, number(2.0**-64, "float"), unit)
    scale = f.select(small, number(2.0**64, "float"), scale)
    scaled = f.binary("fmul", divisor, scale)
    if SHORT in emitter.source.attributes:
        # One unit in the last place off. The one that is not has a path of its own for numbers that are none here.
        return scale, one(f, "rcp.approx.ftz.f32 $0, $1;", "float", scaled)
    return scale, f.binary("fdiv", unit, scaled)


# Everything else


def _others(emitter: Emitter, op: tile.EwOp, operands: Sequence[ThreadTile]) -> bool:
    result = op.result_dtype
    dtypes = [operand.dtype for operand in operands] if op.fn.data == "cast" else _governed(op, operands)
    contract = ROUNDED not in op.attributes

    def compute(*values: Value) -> Value:
        return elementwise.apply(emitter.f, op.fn.data, values, dtypes, result, emitter.level, contract=contract)

    emitter.bind(op.result, _each(_elements(operands), compute))
    return True


_RULES: Sequence[Rule] = (
    emit_positions,
    emit_masks,
    emit_from_bits,
    emit_packed_product,
    _casts,
    _reciprocals,
    _divisions,
    _signs,
    _floats,
    _others,
)
