"""Work on positions: sums of them stay a base and constants, and comparing them takes one comparison per element.

Masks are made of this. a + i < b + j is i − j < b − a: the right side is the same for all registers of a thread, and
the left a constant. The difference stops at the ends of 32 bits, which decides every comparison with small constants
rightly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import arith, scf
from xdsl.ir import Block, SSAValue

from tessera.dtypes.types import NO_POLICY, Kind, i32, i64
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import view_type
from tessera.targets.cuda.emit.emitter import Emitter
from tessera.targets.cuda.emit.thread_tiles import Affine, Question, ThreadTile
from tessera.targets.cuda.ir.hopper import ExtentOp, IdOp
from tessera.targets.cuda.ptx.inline import one
from tessera.targets.llvm.literals import folded, literal
from tessera.targets.llvm.text import Value, number

_PREDICATES: Mapping[str, str] = {"lt": "sgt", "le": "sge", "gt": "slt", "ge": "sle", "eq": "eq", "ne": "ne"}
"""Comparisons of a constant with a difference, the difference first."""
_LIMIT = 1 << 31


def is_bounded(value: SSAValue, carried: frozenset[SSAValue] = frozenset()) -> bool:
    """Whether a scalar is made of sizes, positions, constants and short items, all of which are less than 2^31.

    What loops have `carried` from iteration to iteration is, unless it is made of itself.
    """

    def bounded(one: SSAValue) -> bool:
        return is_bounded(one, carried)

    op = value.owner
    if isinstance(op, Block):
        return _is_bounded_in(op, value, carried)
    match op:
        case arith.ConstantOp() | tile.DimOp() | tile.ProgramIdOp() | IdOp() | ExtentOp():
            return True
        case tile.ItemOp():
            dtype = view_type(op.view).dtype
            return dtype.is_integer and dtype.bits <= (31 if dtype.kind is Kind.UINT else 32)
        case arith.MaxSIOp():
            return any(bounded(a) and _ends(b) for a, b in ((op.lhs, op.rhs), (op.rhs, op.lhs)))
        case arith.AddiOp() | arith.SubiOp() | arith.MuliOp() | arith.MinSIOp() | arith.SelectOp():
            return bounded(op.lhs) and bounded(op.rhs)
        case arith.FloorDivSIOp() | arith.CeilDivSIOp() | arith.DivSIOp() | arith.DivUIOp():
            return bounded(op.lhs)
        case arith.RemSIOp() | arith.RemUIOp():
            return bounded(op.rhs)
        case arith.IndexCastOp():
            return bounded(op.input)
        case _:
            return False


def _is_bounded_in(block: Block, value: SSAValue, carried: frozenset[SSAValue]) -> bool:
    """Whether the counter of a loop, or what it carries, is bounded."""
    loop = block.parent_op()
    if not isinstance(loop, scf.ForOp) or value in carried:
        return False
    if block.args[0] is value:
        return True
    index, end = list(block.args).index(value) - 1, block.last_op  # pyright: ignore[reportArgumentType]
    given = [] if end is None else [loop.iter_args[index], end.operands[index]]
    return bool(given) and all(is_bounded(one, carried | {value}) for one in given)


def _ends(value: SSAValue) -> bool:
    """Whether a scalar has such a bound above: it may be anything below."""
    op = value.owner
    match op:
        case arith.MinSIOp():
            return _ends(op.lhs) or _ends(op.rhs)
        case arith.AddiOp() | arith.MaxSIOp():
            return _ends(op.lhs) and _ends(op.rhs)
        case arith.SubiOp():
            return _ends(op.lhs) and is_bounded(op.rhs)
        case _:
            return is_bounded(value)


def affine_of(tile_: ThreadTile) -> Affine | None:
    """A tile's base and constants, if it has such; one number everywhere is one, too."""
    if tile_.affine is not None or tile_.dtype not in (i32, i64):
        return tile_.affine
    first, *others = tile_.elements()
    return Affine(first, (0,) * tile_.count, False) if all(other == first for other in others) else None


def emit_positions(emitter: Emitter, op: tile.EwOp, operands: Sequence[ThreadTile]) -> bool:
    """Emits an op on positions, if it is one."""
    if operands[0].dtype not in (i32, i64) or not any(operand.affine is not None for operand in operands):
        return False
    forms = [affine_of(operand) for operand in operands]
    if any(form is None for form in forms) or op.result_dtype.policy != NO_POLICY:
        return False
    given = [form for form in forms if form is not None]
    fn = op.fn.data
    if fn == "cast" and op.result_dtype in (i32, i64):
        _cast(emitter, op, given[0])
    elif fn in ("add", "sub"):
        _add(emitter, op, *given)
    elif fn in _PREDICATES:
        return _compare(emitter, op, *given)
    else:
        return False
    return True


def _cast(emitter: Emitter, op: tile.EwOp, x: Affine) -> None:
    f, target = emitter.f, f"i{op.result_dtype.bits}"
    known = literal(x.base)
    opcode = "sext" if target == "i64" else "trunc"
    base = f.convert(opcode, x.base, target) if known is None else number(known, target)
    emitter.bind(op.result, affine=x._replace(base=base))


def _add(emitter: Emitter, op: tile.EwOp, a: Affine, b: Affine) -> None:
    sign = 1 if op.fn.data == "add" else -1
    base = folded(emitter.f, op.fn.data, a.base, b.base)
    offsets = tuple(x + sign * y for x, y in zip(a.offsets, b.offsets, strict=True))
    emitter.bind(op.result, affine=Affine(base, offsets, a.bounded and b.bounded))


def _compare(emitter: Emitter, op: tile.EwOp, a: Affine, b: Affine) -> bool:
    # A number that is the same everywhere may be any: nothing is added to it.
    if not all(form.bounded or not any(form.offsets) for form in (a, b)) or not (a.bounded or b.bounded):
        return False
    difference = _difference(emitter, b.base, a.base, bounded=a.bounded and b.bounded)
    offsets = tuple(x - y for x, y in zip(a.offsets, b.offsets, strict=True))
    emitter.bind(op.result, questions=(Question(_PREDICATES[op.fn.data], difference, offsets),))
    return True


def _difference(emitter: Emitter, a: Value, b: Value, *, bounded: bool) -> Value:
    """a − b in 32 bits, which stops at the ends. What is `bounded` does not wrap in 64 bits."""
    f, known = emitter.f, (literal(a), literal(b))
    if known[0] is not None and known[1] is not None:
        return number(min(max(known[0] - known[1], -_LIMIT), _LIMIT - 1), "i32")
    if a.type == "i32":
        return one(f, "sub.sat.s32 $0, $1, $2;", "i32", a, b)
    wide = f.binary("sub", a, b) if bounded else f.intrinsic("ssub.sat", a, b)
    return one(f, "cvt.sat.s32.s64 $0, $1;", "i32", wide)


def picked_from(x: Affine, registers: Sequence[int]) -> Affine:
    """The same numbers, seen through other registers."""
    return x._replace(offsets=tuple(x.offsets[register] for register in registers))
