"""Elementwise work on what stands in an expression: numbers take tensors' types, types promote, shapes broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tessera.dtypes.promotion import as_dtype, as_float, beside_number, is_higher, promote
from tessera.dtypes.types import DType, Kind, f32, f64, i64
from tessera.errors import DtypeError
from tessera.ir.common import elementwise as table
from tessera.lang.tracing import primitives
from tessera.lang.tracing.shape_rules import ruled
from tessera.lang.tracing.values import Traced, shown, stories
from tessera.runtime.tensor.operators import check_power, nearest, number_class
from tessera.shapes import rules
from tessera.shapes.expr import Size


def elementwise(fn: str, *xs: Any) -> Traced:
    """A row of the elementwise table on operands of any kinds that fit together."""
    if fn == "select":
        condition, *alternatives = xs
        return primitives.ew("select", *broadcast_all([primitives.lift(condition), *typed("where", alternatives)], fn))
    operands = typed(fn, xs)
    if fn == "pow" and not operands[0].weak:
        check_power(operands[0].dtype, xs[1])
    return in_row(fn, *broadcast_all(operands, fn))


def in_row(fn: str, *xs: object) -> Traced:
    """A row on operands of one type and shape, in the type in which it takes them."""
    operands = [x if isinstance(x, Traced) and x.weak else tensor(x) for x in xs]
    row, dtype = table.row_for(fn, operands[0].dtype)
    if dtype is not operands[0].dtype:
        operands = [primitives.cast(x, dtype) for x in operands]
    return primitives.ew(row, *operands)


def tensor(x: Any) -> Traced:
    """`x` as a traced value with a type of its own: a Python float is f32, an int i64."""
    made = primitives.lift(x)
    if made.weak:
        made = primitives.cast(made, f32 if made.dtype.is_float else made.dtype)
    return made


def typed(fn: str, xs: Sequence[Any]) -> list[Traced]:
    """Operands as traced values of one element type: that of the tensors among them, or of the numbers."""
    given = [x if isinstance(x, bool | int | float) else primitives.lift(x) for x in xs]
    tensors = [x for x in given if isinstance(x, Traced)]
    strong = [x.dtype for x in tensors if not x.weak]
    if not strong:
        common = _of_numbers(fn, [x.dtype if isinstance(x, Traced) else as_dtype(_class_of(x)) for x in given])
        return [_weakly(x, common) for x in given]
    try:
        common = promote(*strong)
        if table.takes_only_floats(fn):
            common = as_float(common)
        for x in given:
            if not isinstance(x, Traced) or x.weak:
                common = beside_number(common, _class_of(x))
    except DtypeError as error:
        error.message = f"{fn}: {error.message}"
        error.shapes = shown(*tensors)
        error.story = stories(tensors)
        raise
    target = nearest(common)
    return [primitives.cast(x, target) if isinstance(x, Traced) else _constant(x, target) for x in given]


def _class_of(x: object) -> type:
    """The class of Python that a number is of, also of one that is an argument."""
    if not isinstance(x, Traced):
        return number_class(x) or type(x)
    return bool if x.dtype.kind is Kind.BOOL else float if x.dtype.is_float else int


def _constant(x: Any, dtype: DType) -> Traced:
    return primitives.constant(x, (), dtype)


def stored(where: str, x: object, dtype: DType) -> Traced:
    """A value in the type of a tensor that it is put into; one of a higher kind, which would lose more, is refused."""
    made = primitives.lift(x)
    if is_higher(made.dtype.kind, dtype.kind):
        named = f"a Python {_class_of(made).__name__}" if made.weak else f"a value of {made.dtype}"
        raise DtypeError(
            f"{where}: {named} does not go into a tensor of {dtype}",
            shapes=shown(made),
            story=made.history.lines(),
            hint="cast the tensor first, or use a number of the tensor's kind",
        )
    if isinstance(x, bool | int | float):
        return _constant(x, nearest(dtype))
    if not made.weak:
        promote(made.dtype, dtype)
    return primitives.cast(made, nearest(dtype))


def _of_numbers(fn: str, dtypes: Sequence[DType]) -> DType:
    """Numbers alone are as in Python: bool below int below float. Arguments come in the widest type of their kind."""
    if any(dtype.is_float for dtype in dtypes) or table.takes_only_floats(fn):
        return f64
    row = table.TABLE.get(fn)
    counts = row is not None and Kind.BOOL not in row.kinds and bool(row.kinds)
    return i64 if counts or any(dtype.is_integer for dtype in dtypes) else dtypes[0]


def _weakly(x: Any, common: DType) -> Traced:
    made = primitives.constant(x, (), common) if not isinstance(x, Traced) else x
    if made.dtype is not common:
        made = primitives.ew("cast", made, to=common)
    made.weak = True
    return made


def broadcast_all(operands: Sequence[Traced], where: str) -> list[Traced]:
    """Operands in the one shape that they broadcast to."""
    shape = broadcast_shapes(*operands, where=where)
    return [primitives.broadcast_to(operand, shape) for operand in operands]


def broadcast_shapes(*operands: Traced, where: str = "broadcast") -> tuple[Size, ...]:
    """The shape that operands broadcast to."""
    shapes = [operand.sizes for operand in operands]
    return ruled(rules.broadcast, *shapes, where=where, histories=[operand.history for operand in operands])
