"""Primitives: each writes one op of the graph dialect, with the user's source line and the shape's history.

Operands are traced values, or arrays that then become arguments. Shapes and element types are as the op asks:
`arithmetic` promotes and broadcasts. The IR is imported when the first op is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tessera.dtypes.promotion import as_dtype
from tessera.dtypes.types import DType, f32, f64, i64
from tessera.errors import DeviceError, DtypeError, EffectError, ShapeError, TesseraError, caller_span
from tessera.lang.tracing.effects import allow
from tessera.lang.tracing.graph_modules import dialect, effects, indexing, locations, slices, types
from tessera.lang.tracing.index_ranges import IndexRange
from tessera.lang.tracing.shape_rules import ruled
from tessera.lang.tracing.sizes import TracedSize, plain, plain_shape, plain_size
from tessera.lang.tracing.values import Copied, Trace, Traced, current, shown, stories, telling
from tessera.runtime.tensor.creation import asarray
from tessera.runtime.tensor.interface import DTypeLike
from tessera.runtime.tensor.operators import weak_scalar
from tessera.runtime.tensor.pytree import tree_leaves
from tessera.runtime.tensor.tensor import Tensor
from tessera.shapes import rules
from tessera.shapes.expr import DimLike, Size, dim, format_shape
from tessera.shapes.history import ShapeHistory
from tessera.tile.calls.settings import settings

if TYPE_CHECKING:
    from xdsl.ir import Operation, SSAValue


def lift(value: Any) -> Traced:
    """A traced value for `value`: itself, an array as one more argument, or a number or a size as a weak one."""
    trace = current()
    if isinstance(value, Traced):
        if value.trace is not trace:
            raise _from_elsewhere(value)
        value.value = trace.now(value.value)
        if not trace.sees(value.value):
            raise EffectError(
                "a value of a branch or a loop's body is used outside of it",
                shapes=shown(value),
                story=value.history.lines(),
                hint="return it from the body; keep nothing in lists or other outer variables",
            )
        return value
    if isinstance(value, bool | int | float):
        return number(value)
    if isinstance(value, TracedSize):
        made = size_value(value)
        made.weak = True
        return made
    _check_listed(trace, value)
    tensor = value if isinstance(value, Tensor) else asarray(value)
    if not trace.device.is_host and id(value) not in trace.hidden and isinstance(value, np.ndarray | list | tuple):
        # Such a thing lies on no device: it is copied to where the function runs, and looked at again in each call.
        if isinstance(value, np.ndarray):
            trace.copied.append(Copied.of(value))  # pyright: ignore[reportUnknownArgumentType]  # of any type
        tensor = tensor.to(trace.device)
    return _hidden(trace, tensor, value)


def _check_listed(trace: Trace, value: Any) -> None:
    """Refuses a list of values for one: containers are arguments of their own, and are not joined by themselves."""
    if type(value) in (list, tuple) and any(isinstance(leaf, Traced | Tensor) for leaf in tree_leaves(value)):
        raise DtypeError(
            f"{trace.name}: expected a tensor or a number, got a {type(value).__name__} of {len(value)}",
            hint="make a tensor of numbers with ts.asarray, of tensors with ts.stack or ts.concat",
        )


def _from_elsewhere(value: Traced) -> TesseraError:
    ended = "which has ended" if value.trace.closed else "which is another one"
    return EffectError(
        f"a traced value of {value.trace.name}, {ended}, is used in {current().name}",
        shapes=shown(value),
        story=value.history.lines(),
        hint="return values from a jitted function and pass them as arguments; keep none in lists or globals",
    )


def _hidden(trace: Trace, tensor: Tensor, source: Any) -> Traced:
    """An array from outside the function: an argument that callers do not see."""
    found = trace.hidden.get(id(source))
    if found is None:
        if tensor.device is not trace.device:
            raise DeviceError(
                f"{trace.name} runs on {trace.device}, and uses an array of {tensor.device}",
                shapes=[f"{format_shape(tensor.shape)} of {tensor.dtype} on {tensor.device}"],
                hint=f"bring it over first: .to({str(trace.device)!r})",
            )
        history = ShapeHistory("captured array", tensor.shape, span=caller_span())
        traced = argument(trace, tensor.shape, tensor.dtype, history)
        # The source is kept as long as its id is used.
        trace.kept.setdefault("sources", []).append(source)
        found = trace.hidden[id(source)] = (tensor, traced)
    return found[1]


def argument(
    trace: Trace, sizes: Sequence[DimLike], dtype: DType, history: ShapeHistory, *, weak: bool = False
) -> Traced:
    """One more argument of the function that is traced."""
    shape = plain_shape(sizes)
    made = trace.body.insert_arg(types.GraphTensorType.of(shape, dtype), len(trace.body.args))
    return Traced(made, shape, dtype, history, trace, weak=weak)


def write(op: Operation) -> Operation:
    """Puts an op where the trace is, at the user's line."""
    op.location = locations.location_of(caller_span())
    current().block.add_op(op)
    return op


def result_of(name: str, value: SSAValue, operands: Sequence[Traced], *, weak: bool = False) -> Traced:
    """The traced value for an op's result; its history goes on from its first operand's."""
    type_ = types.graph_type(value)
    span = caller_span()
    if operands:
        history = operands[0].history.step(name, type_.shape, span)
    else:
        history = ShapeHistory(name, type_.shape, span=span)
    return Traced(value, type_.shape, type_.dtype, history, current(), weak=weak)


def emit(name: str, make: Callable[[Sequence[SSAValue]], Operation], *operands: Traced, weak: bool = False) -> Traced:
    """Writes the op that `make` makes of operands' values; its errors come with their story."""
    try:
        op = make([operand.value for operand in operands])
    except TesseraError as error:
        # The op tells its operands' story in terms of the IR; users know their own.
        error.shapes, error.story = shown(*operands), stories(operands)
        raise
    write(op)
    return result_of(name, op.results[0], operands, weak=weak)


def tensor_type(shape: Sequence[DimLike], dtype: DType) -> Any:
    return types.GraphTensorType.of(plain_shape(shape), dtype)


# Constants


def number(value: bool | float) -> Traced:
    """A Python number as a weak value without axes."""
    made = constant(value, (), as_dtype(type(value)) if isinstance(value, bool | int) else f64)
    made.weak = True
    return made


def constant(value: bool | float, shape: Sequence[DimLike], dtype: DTypeLike) -> Traced:
    """`value` everywhere in `shape`."""
    target = as_dtype(dtype)
    element = weak_scalar(value if isinstance(value, bool | int | float | np.generic) else float(value), target)
    op = dialect.ConstantOp(types.dense(element, target), tensor_type(shape, target))
    return emit("constant", lambda _: op)


def constant_array(values: Any, dtype: DTypeLike | None = None) -> Traced:
    """Known elements, such as a small table, as part of the program."""
    tensor = asarray(values, dtype=None if dtype is None else as_dtype(dtype))
    array = tensor.cpu().numpy()
    op = dialect.ConstantOp(types.dense(array, tensor.dtype), tensor_type(tensor.shape, tensor.dtype))
    return emit("constant", lambda _: op)


def iota(shape: Sequence[DimLike], axis: int, dtype: DTypeLike = i64) -> Traced:
    """The position along `axis`."""
    target, sizes = as_dtype(dtype), plain_shape(shape)
    if not target.is_integer:
        raise DtypeError(f"iota counts in an integer type, got {target}", hint="count in i64, and cast")
    along = rules.normalize_axis(axis, len(sizes), where="iota")
    return emit("iota", lambda _: dialect.IotaOp(along, tensor_type(sizes, target)))


def size_value(size: DimLike, dtype: DTypeLike = i64) -> Traced:
    """A size as a value without axes, such as the count that a mean divides by."""
    target, known = as_dtype(dtype), plain(size)
    total: Traced | None = None
    for monomial, coefficient in known.terms:
        term = constant(coefficient, (), i64) if coefficient != 1 or not monomial else None
        for atom in monomial:
            if not isinstance(atom, str):
                factor = ew("floordiv", size_value(atom.numerator), constant(atom.divisor, (), i64))
            else:
                factor = reduce("sum", constant(1, (dim(atom),), i64), [0])
            term = factor if term is None else ew("mul", term, factor)
        assert term is not None
        total = term if total is None else ew("add", total, term)
    return cast(constant(0, (), i64) if total is None else total, target)


# Elementwise


def ew(fn: str, *xs: Any, to: DTypeLike | None = None, seed: int | None = None) -> Traced:
    """One row of the elementwise table over operands of one shape and one element type."""
    operands = [lift(x) for x in xs]
    target = None if to is None else as_dtype(to)
    weak = all(operand.weak for operand in operands) and to is None
    return emit(fn, lambda values: dialect.EwOp(fn, values, to=target, seed=seed), *operands, weak=weak)


def cast(x: Any, dtype: DTypeLike, *, seed: int | None = None) -> Traced:
    """`x` in another element type; itself where it has that type."""
    operand, target = lift(x), as_dtype(dtype)
    if operand.dtype is target and not operand.weak:
        return operand
    if operand.dtype is target:
        return Traced(operand.value, operand.sizes, target, operand.history, operand.trace)
    if target.policy.stochastic and seed is None:
        raise DtypeError(
            f"a cast to {target} is rounded at random, and has no seed",
            shapes=shown(operand),
            story=operand.history.lines(),
            hint="give seed=, or cast to the type without stochastic_round",
        )
    return ew("cast", operand, to=target, seed=seed)


# Shapes


def broadcast_to(x: Any, shape: Sequence[DimLike]) -> Traced:
    """NumPy's rule: missing leading axes appear, axes of size 1 repeat."""
    operand, target = lift(x), plain_shape(shape)
    if operand.sizes == target:
        return operand
    found = ruled(rules.broadcast, operand.sizes, target, where="broadcast_to", histories=[operand.history])
    if found != target:
        raise ShapeError(
            "broadcast_to: a tensor can only grow",
            shapes=[f"from {format_shape(operand.sizes)}", f"to {format_shape(target)}"],
            story=operand.history.lines(),
            hint="each axis must be 1 or have the size asked for, counted from the last axis",
        )
    return emit("broadcast_to", lambda values: dialect.BroadcastOp(values[0], target), operand, weak=operand.weak)


def reshape(x: Any, shape: Sequence[DimLike]) -> Traced:
    """The same elements, row by row, under other sizes; one may be -1."""
    operand = lift(x)
    target = ruled(rules.reshape, operand.sizes, _with_numbers(plain_shape(shape)), histories=[operand.history])
    if operand.sizes == target:
        return operand
    return emit("reshape", lambda values: dialect.ReshapeOp(values[0], target), operand)


def _with_numbers(shape: Sequence[Size]) -> tuple[Size, ...]:
    """A shape as a rule may take it: an expression that comes out below 0 here means what its number does.

    So does one that comes out 0 beside a size that is left open: nothing can be divided by it.
    """
    sizes, least = current().sizes, 1 if -1 in shape else 0
    if sizes.numbers is None:
        return tuple(shape)
    return tuple(
        [sizes.number(one) if not isinstance(one, int) and sizes.ask(one, "<", least) else one for one in shape]
    )


def transpose(x: Any, permutation: Sequence[int]) -> Traced:
    """Axis i of the result is axis permutation[i] of `x`."""
    operand = lift(x)
    with telling(operand):
        rules.transpose(operand.sizes, permutation)
    order = [axis % max(1, operand.ndim) for axis in permutation]
    if order == list(range(operand.ndim)):
        return operand
    return emit("transpose", lambda values: dialect.TransposeOp(values[0], order), operand)


def slice_(
    x: Any, starts: Sequence[int | None], stops: Sequence[Size | None], steps: Sequence[int | None] | None = None
) -> Traced:
    """Python's slices, one per axis; None means what it means there. A stop may be a symbolic size of the axis."""
    operand = lift(x)
    strides = [1 if step is None else int(step) for step in (steps or [1] * operand.ndim)]
    begins = [None if start is None else plain_size(start) for start in starts]
    # A stop that is the axis' own size says the same as none, and none needs no number.
    ends = [
        None if stop is None or (plain_size(stop) == size and stride > 0) else plain_size(stop)
        for stop, size, stride in zip(stops, operand.sizes, strides, strict=True)
    ]
    if any(bound is not None for bound in (*begins, *ends)):
        _ask_bounds(operand, begins, ends, strides)
    known = current().sizes.intervals
    found = ruled(rules.slice_shape, operand.sizes, begins, ends, strides, known=known, histories=[operand.history])
    if found == operand.sizes and all(stride > 0 for stride in strides):
        return operand
    written = [_written(bounds, operand, axis) for axis, bounds in enumerate(zip(begins, ends, strides, strict=True))]
    firsts, lasts = [first for first, _ in written], [last for _, last in written]
    return emit("slice", lambda values: dialect.SliceOp(values[0], firsts, lasts, strides, known=known), operand)


def _ask_bounds(
    operand: Traced, begins: Sequence[Size | None], ends: Sequence[Size | None], strides: Sequence[int]
) -> None:
    """A slice of a symbolic axis with numbers as bounds asks whether the axis is that long, where that is not known."""
    sizes = current().sizes
    for item, begin, end, stride in zip(operand.sizes, begins, ends, strides, strict=True):
        if isinstance(item, int) or sizes.numbers is None or stride < 0:
            continue
        for bound in (begin, end):
            least = 0 if bound is None or not isinstance(bound, int) else bound if bound >= 0 else -bound
            if least and not sizes.ask(item, "<", least) and str(item).isidentifier():
                low, high = sizes.intervals.get(str(item), (0, None))
                sizes.intervals[str(item)] = (max(low or 0, least), high)


def _written(bounds: tuple[Size | None, Size | None, int], operand: Traced, axis: int) -> tuple[int, int]:
    """The bounds of a slice as the op has them: numbers, open ends among them."""
    begin, end, stride = bounds
    extent = operand.sizes[axis]
    if isinstance(extent, int):
        first, last, _ = slice(begin, end, stride).indices(extent)
        if not range(first, last, stride):
            return 0, 0  # a start before the first element, -1 here, would be the last one there
        return first, slices.BEFORE_FIRST if last < 0 else last
    numbers = [
        bound if bound is None or isinstance(bound, int) else _as_number(bound, operand, axis) for bound in (begin, end)
    ]
    open_ends = (0, slices.LAST) if stride > 0 else (slices.LAST, slices.BEFORE_FIRST)
    first, last = (other if bound is None else bound for bound, other in zip(numbers, open_ends, strict=True))
    return first, last


def _as_number(bound: Size, operand: Traced, axis: int) -> int:
    """A symbolic bound of a slice: counted from the end if that is a number, else asked for."""
    from_end = plain_size(bound - operand.sizes[axis])
    if isinstance(from_end, int) and from_end < 0:
        return from_end
    return current().sizes.number(plain(bound))


def concatenate(xs: Sequence[Any], axis: int) -> Traced:
    """Tensors of one element type, one after the other along an axis."""
    operands = [lift(x) for x in xs]
    shapes = [operand.sizes for operand in operands]
    ruled(rules.concatenate, shapes, axis, histories=[operand.history for operand in operands])
    if len(operands) == 1:
        return operands[0]
    return emit("concatenate", lambda values: dialect.ConcatenateOp(values, axis), *operands)


def lie_inside(indices: Traced, low: Size, high: Size, what: str, ignored: int | None = None) -> None:
    """Records the range of indices that are an argument: eager calls check it."""
    trace = current()
    if indices.value.owner is trace.body:
        trace.index_ranges.append(IndexRange(trace.body.args.index(indices.value), dim(low), dim(high), what, ignored))


def looked_at(indices: Any, size: Size, what: str, *, ignored: int | None = None) -> Traced:
    """Indices from 0 to below a size, as they are. Where indices are checked, so are these: they look themselves up."""
    made = lift(indices)
    lie_inside(made, 0, size, what, ignored)
    chosen = settings()
    if chosen is not None and "bounds" not in chosen.checks:
        return made
    wide = cast(made, i64)
    if ignored is None:
        return gather(iota((size,), 0, i64), wide, 0)
    skipped = ew("eq", wide, broadcast_to(constant(ignored, (), i64), wide.sizes))
    zeros = constant(0, wide.sizes, i64)
    return ew("select", skipped, wide, gather(iota((size,), 0, i64), ew("select", skipped, zeros, wide), 0))


def check_indices(x: Traced, indices: Traced) -> None:
    """Refuses indices of `x` that are no whole numbers."""
    if not indices.dtype.is_integer:
        raise DtypeError(
            f"gather: indices are integers, got {indices.dtype}",
            shapes=shown(x, indices),
            story=indices.history.lines(),
            hint="cast them to i64",
        )


def gather(x: Any, indices: Any, axis: int) -> Traced:
    """Slices of `x` at integer indices along an axis; every index must be in range."""
    return gather_along(x, [indices], [axis])


def gather_along(x: Any, indices: Sequence[Any], axes: Sequence[int]) -> Traced:
    """Slices of `x` at integer indices along axes in order, indices of one shape for each; all must be in range."""
    source, given = lift(x), [lift(one) for one in indices]
    for one, axis in zip(given, axes, strict=True):
        lie_inside(one, 0, source.sizes[axis], f"axis {axis}")
        check_indices(source, one)
    return emit("gather", lambda values: dialect.GatherOp(values[0], values[1:], axes), source, *given)


def scatter(kind: str, x: Any, indices: Sequence[Any], updates: Any, axes: Sequence[int]) -> Traced:
    """`x` with updates set, added, … at integer indices along axes in order, one after the other."""
    source, new, given = lift(x), lift(updates), [lift(one) for one in indices]
    for one, axis in zip(given, axes, strict=True):
        lie_inside(one, 0, source.sizes[axis], f"axis {axis}")
    return emit(
        "scatter",
        lambda values: indexing.ScatterOp(kind, values[0], values[1], values[2:], axes),
        *(source, new, *given),
    )


def dynamic_slice(x: Any, starts: Sequence[Any], sizes: Sequence[DimLike]) -> Traced:
    """A part of `x` of known sizes from starts on, one whole number for each axis, moved so that all is inside."""
    source, part, given = lift(x), plain_shape(sizes), [lift(one) for one in starts]
    if part == source.sizes:
        return source
    return emit("slice", lambda values: indexing.DynamicSliceOp(values[0], values[1:], part), source, *given)


def dynamic_update(x: Any, update: Any, starts: Sequence[Any]) -> Traced:
    """`x` with a part replaced, from starts on that are moved so that all of the part is inside."""
    source, new, given = lift(x), lift(update), [lift(one) for one in starts]
    return emit(
        "update", lambda values: indexing.DynamicUpdateSliceOp(values[0], values[1], values[2:]), *(source, new, *given)
    )


def cumulate(kind: str, x: Any, axis: int, *, exclusive: bool = False) -> Traced:
    """The running reduction along an axis: of all elements up to each; `exclusive`, of all before it."""
    return emit("cumulate", lambda values: indexing.CumulateOp(kind, values[0], axis, exclusive=exclusive), lift(x))


# Reductions and matmuls


def reduce(kind: str, x: Any, axes: Sequence[int], keepdims: bool = False) -> Traced:
    """Folds axes: sum prod max min and or xor; sums and products accumulate as the element type's policy says."""
    operand = lift(x)
    if not axes:
        return operand
    return emit(kind, lambda values: dialect.ReduceOp(kind, values[0], list(axes), keepdims=keepdims), operand)


def matmul(a: Any, b: Any, to: DTypeLike | None = None) -> Traced:
    """Matmul over the last two axes, leading axes broadcast; one rounding at the end, into `to`."""
    left, right = lift(a), lift(b)
    target = left.dtype if to is None else as_dtype(to)
    ruled(rules.matmul, left.sizes, right.sizes, histories=[left.history, right.history])
    if left.dtype.base is not right.dtype.base:
        raise DtypeError(
            f"matmul: operands have one element type, got {left.dtype} and {right.dtype}",
            shapes=shown(left, right),
            story=(*left.history.lines(), *right.history.lines()),
            hint="cast one of them first",
        )
    return emit("matmul", lambda values: dialect.MatmulOp(*values, to=target), left, right)


# Effects


def random(distribution: str, shape: Sequence[DimLike], dtype: DTypeLike = f32) -> Traced:
    """Fresh numbers from the function's random stream: uniform on [0, 1), or normal. The order of draws matters."""
    target = as_dtype(dtype)
    if not target.is_float:
        raise DtypeError(f"random numbers are floats, {target} was asked for", hint="use a float dtype")
    allow("random", f"a draw from the random stream ({distribution})")
    return emit(distribution, lambda _: effects.RandomOp(distribution, tensor_type(shape, target)))


def show(label: str, x: Any) -> None:
    """Prints a labelled tensor when the program runs."""
    operand = lift(x)
    allow("io", "printing")
    write(effects.PrintOp(label, operand.value))
