"""Elementwise work on what stands in an expression: numbers take tensors' types, types promote, shapes broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tessera.dtypes.promotion import as_dtype, promote
from tessera.dtypes.types import DType, Kind, f32, f64, i64
from tessera.errors import DtypeError
from tessera.lang.tracing import primitives
from tessera.lang.tracing.shape_rules import ruled
from tessera.lang.tracing.values import Traced, shown, stories
from tessera.runtime.tensor.operators import nearest
from tessera.shapes import rules
from tessera.shapes.expr import Size

_RANK = {Kind.BOOL: 0, Kind.UINT: 1, Kind.INT: 1, Kind.FLOAT: 2}


def elementwise(fn: str, *xs: Any) -> Traced:
    """A row of the elementwise table on operands of any kinds that fit together."""
    if fn == "select":
        condition, *alternatives = xs
        return primitives.ew("select", *broadcast_all([primitives.lift(condition), *typed("where", alternatives)], fn))
    return primitives.ew(fn, *broadcast_all(typed(fn, xs), fn))


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
        common = _of_numbers([x.dtype if isinstance(x, Traced) else as_dtype(type(x)) for x in given])
        return [_weakly(x, common) for x in given]
    try:
        common = promote(*strong)
    except DtypeError as error:
        error.message = f"{fn}: {error.message}"
        error.shapes = shown(*tensors)
        error.story = stories(tensors)
        raise
    target = nearest(common)
    return [_beside(fn, x, target) for x in given]


def _of_numbers(dtypes: Sequence[DType]) -> DType:
    """Numbers alone are as in Python: bool below int below float. Arguments come in the widest type of their kind."""
    top = max(_RANK[dtype.kind] for dtype in dtypes)
    if top == 2:
        return f64
    return i64 if top == 1 else dtypes[0]


def _weakly(x: Any, common: DType) -> Traced:
    made = primitives.constant(x, (), common) if not isinstance(x, Traced) else x
    if made.dtype is not common:
        made = primitives.ew("cast", made, to=common)
    made.weak = True
    return made


def _beside(fn: str, x: Any, target: DType) -> Traced:
    """One operand in the type of the tensors beside it."""
    if not isinstance(x, Traced):
        return primitives.constant(x, (), target)
    if x.weak and _RANK[x.dtype.kind] > _RANK[target.kind]:
        raise DtypeError(
            f"{fn}: a Python {'float' if x.dtype.is_float else 'int'} does not go with a tensor of {target}",
            shapes=shown(x),
            story=x.history.lines(),
            hint="cast the tensor first, or use a number of the tensor's kind",
        )
    return primitives.cast(x, target)


def broadcast_all(operands: Sequence[Traced], where: str) -> list[Traced]:
    """Operands in the one shape that they broadcast to."""
    shape = broadcast_shapes(*operands, where=where)
    return [primitives.broadcast_to(operand, shape) for operand in operands]


def broadcast_shapes(*operands: Traced, where: str = "broadcast") -> tuple[Size, ...]:
    """The shape that operands broadcast to."""
    shapes = [operand.sizes for operand in operands]
    return ruled(rules.broadcast, *shapes, where=where, histories=[operand.history for operand in operands])
