"""Control flow of traced functions: `cond`, `while_loop`, `scan` and `fori_loop` over pytrees.

Bodies are traced once, into blocks of their own. Outside of a trace these are plain Python: what is chosen runs, and
loops loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tessera.dtypes.types import bool_
from tessera.errors import DtypeError, ShapeError, TesseraError, caller_span
from tessera.lang.tracing import primitives
from tessera.lang.tracing.arithmetic import elementwise, tensor
from tessera.lang.tracing.graph_modules import control, types
from tessera.lang.tracing.sizes import TracedSize, plain_size
from tessera.lang.tracing.values import Traced, current, current_or_none, is_array
from tessera.runtime.tensor.creation import asarray
from tessera.runtime.tensor.pytree import tree_flatten, tree_map, tree_unflatten
from tessera.shapes.expr import Size, format_shape

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Region


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], *operands: Any) -> Any:
    """`true_fn(*operands)` where `pred` holds, else `false_fn(*operands)`; only the one chosen runs.

    Both must give results of one structure, shapes and dtypes. A Python bool chooses while tracing.
    """
    if isinstance(pred, bool):
        return (true_fn if pred else false_fn)(*operands)
    if current_or_none() is None:
        return (true_fn if pred else false_fn)(*operands)
    flag = _flag(pred, "cond")
    values, structure = _lifted(operands)
    chosen, given, first = _branch(true_fn, values, structure)
    otherwise, others, second = _branch(false_fn, values, structure)
    _expect_alike("cond: the branches", ("true_fn", given, first), ("false_fn", others, second))
    op = control.CondOp(flag.value, chosen, otherwise, [value.value.type for value in given])
    primitives.write(op)
    results = [_result("cond", value, op.results[index], values) for index, value in enumerate(given)]
    return tree_unflatten(first, results)


def while_loop(cond_fn: Callable[[Any], Any], body_fn: Callable[[Any], Any], init_val: Any) -> Any:
    """`val = body_fn(val)` from `init_val` for as long as `cond_fn(val)` holds; structure, shapes and dtypes stay."""
    if current_or_none() is None:
        value = init_val
        while cond_fn(value):
            value = body_fn(value)
        return value
    values, structure = _lifted(init_val)
    values = [tensor(value) for value in values]
    kinds, steps = [value.value.type for value in values], ["carried by while_loop"] * len(values)
    condition, arguments = _body(values, kinds, steps)
    with current().within(condition.block):
        flag = _flag(cond_fn(tree_unflatten(structure, arguments)), "while_loop: cond_fn")
        primitives.write(control.YieldOp([flag.value]))
    body, arguments = _body(values, kinds, steps)
    with current().within(body.block):
        given, after = _lifted(body_fn(tree_unflatten(structure, arguments)))
        given = _as_before(given, values)
        _expect_alike("while_loop: the value", ("before", values, structure), ("after body_fn", given, after))
        primitives.write(control.YieldOp([value.value for value in given]))
    op = control.WhileOp([value.value for value in values], condition, body)
    primitives.write(op)
    results = [_result("while_loop", value, op.results[index], [value]) for index, value in enumerate(values)]
    return tree_unflatten(structure, results)


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """`carry, y = f(carry, x)` for each slice `x` of `xs` along its first axis; the last carry, and all `y` stacked.

    Without `xs`, `length` says how often. `reverse` goes from the last slice to the first.
    """
    if current_or_none() is None:
        return _scan_now(f, init, xs, length, reverse)
    carried, structure = _lifted(init)
    carried = [tensor(value) for value in carried]
    slices, inner = _lifted(xs)
    count = _length(slices, length)
    kinds = [value.value.type for value in carried]
    kinds += [control.slice_of(types.graph_type(value.value)) for value in slices]
    steps = [*["carried by scan"] * len(carried), *["one slice of scan's xs"] * len(slices)]
    body, arguments = _body([*carried, *slices], kinds, steps)
    with current().within(body.block):
        pair = f(tree_unflatten(structure, arguments[: len(carried)]), tree_unflatten(inner, arguments[len(carried) :]))
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TesseraError(
                f"scan: f gives a pair of the next carry and one slice of the results, got {type(pair).__name__}",
                hint="return carry, y; y may be None",
            )
        given, after = _lifted(pair[0])
        given = _as_before(given, carried)
        _expect_alike("scan: the carry", ("before", carried, structure), ("after f", given, after))
        stacked, outer = _lifted(pair[1])
        stacked = [tensor(value) for value in stacked]
        primitives.write(control.YieldOp([value.value for value in (*given, *stacked)]))
    op = control.ScanOp(
        count, [value.value for value in carried], [value.value for value in slices], body, reverse=reverse
    )
    primitives.write(op)
    sources = [*carried, *stacked]
    results = [
        primitives.result_of("scan", result, [source]) for result, source in zip(op.results, sources, strict=True)
    ]
    return (tree_unflatten(structure, results[: len(carried)]), tree_unflatten(outer, results[len(carried) :]))


def fori_loop(lower: Any, upper: Any, body_fn: Callable[[Any, Any], Any], init_val: Any) -> Any:
    """`val = body_fn(i, val)` for i from `lower` to `upper` - 1, which may be numbers, sizes or traced integers."""
    if current_or_none() is None:
        value = init_val
        for index in range(int(lower), int(upper)):
            value = body_fn(index, value)
        return value
    if isinstance(lower, int | TracedSize) and isinstance(upper, int | TracedSize):
        count = plain_size(upper - lower)
        if isinstance(count, int):
            count = max(0, count)
        first = lower if isinstance(lower, int) else int(lower)
        indices = elementwise("add", primitives.iota((count,), 0), first)
        return scan(lambda value, index: (body_fn(index, value), None), init_val, indices)[0]
    start, stop = primitives.lift(lower), primitives.lift(upper)
    if not (start.dtype.is_integer and stop.dtype.is_integer):
        raise DtypeError(
            f"fori_loop counts in integers, got {start.dtype} and {stop.dtype}", hint="cast the bounds to i64"
        )
    _, value = while_loop(
        lambda state: state[0] < stop,
        lambda state: (state[0] + 1, body_fn(*state)),
        (elementwise("add", start, elementwise("sub", stop, stop)), init_val),
    )
    return value


def _scan_now(
    f: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any, length: int | None, reverse: bool
) -> tuple[Any, Any]:
    """A scan outside of any trace."""
    slices, structure = tree_flatten(tree_map(asarray, xs))
    lengths: set[int] = {one.shape[0] for one in slices}
    if length is not None:
        lengths.add(length)
    if len(lengths) != 1:
        raise ShapeError(
            f"scan: xs and length say {sorted(lengths) or 'nothing'} about how often",
            shapes=[format_shape(one.shape) for one in slices],
            hint="give xs of one length along their first axis, or length=",
        )
    indices = range(next(iter(lengths)))
    carry: Any = init
    rows: list[Any] = []
    if not indices:
        # What `f` would have given, and in which shapes, a trace of it says.
        def over_nothing(init: Any, xs: Any) -> Any:
            return scan(f, init, xs, 0)

        return import_module("tessera.lang.jit").jit(over_nothing)(init, xs)
    for index in reversed(indices) if reverse else indices:
        carry, row = f(carry, tree_unflatten(structure, [one[index] for one in slices]))
        rows.append(row)
    if reverse:
        rows.reverse()
    return carry, tree_map(lambda *pieces: stacked(pieces), *rows)


def stacked(pieces: Sequence[Any]) -> Any:
    """Arrays of one shape as slices of one, along a new first axis."""
    return import_module("tessera.lang.operators").stack(pieces)


def _flag(value: Any, where: str) -> Traced:
    flag = primitives.lift(value)
    if flag.sizes or flag.dtype.base is not bool_:
        raise (ShapeError if flag.sizes else DtypeError)(
            f"{where}: the condition is one bool, got {format_shape(flag.sizes)} of {flag.dtype}",
            story=flag.history.lines(),
            hint="compare, and reduce with all or any; ts.where chooses element by element",
        )
    return flag


def _lifted(tree: Any) -> tuple[list[Traced], Any]:
    """The leaves of a tree as traced values; sizes count as integers."""
    leaves, structure = tree_flatten(tree)
    values: list[Traced] = []
    for leaf in leaves:
        if isinstance(leaf, TracedSize):
            values.append(primitives.size_value(leaf))
        elif isinstance(leaf, Traced | bool | int | float) or is_array(leaf):
            values.append(primitives.lift(leaf))
        else:
            raise TesseraError(
                f"control flow carries tensors and numbers, got {type(leaf).__name__}",
                hint="let the function see other values from outside, or make them part of the structure",
            )
    return values, structure


def _as_before(given: Sequence[Traced], before: Sequence[Traced]) -> list[Traced]:
    """Weak values become what they replace."""
    if len(given) != len(before):
        return list(given)
    return [
        primitives.cast(now, old.dtype) if now.weak and now.dtype.kind is old.dtype.kind else now
        for now, old in zip(given, before, strict=True)
    ]


def _branch(function: Callable[..., Any], values: Sequence[Traced], structure: Any) -> tuple[Region, list[Traced], Any]:
    region = control.body_of([])
    with current().within(region.block):
        given, result = _lifted(function(*tree_unflatten(structure, values)))
        given = [tensor(value) for value in given]
        primitives.write(control.YieldOp([value.value for value in given]))
    return region, given, result


def _body(values: Sequence[Traced], kinds: Sequence[Attribute], steps: Sequence[str]) -> tuple[Region, list[Traced]]:
    """A loop's body, and its arguments: of these types, and with a step each in the stories of the values."""
    region, span = control.body_of(kinds), caller_span()
    arguments: list[Traced] = []
    for argument, value, step in zip(region.block.args, values, steps, strict=True):
        sizes = types.graph_type(argument).shape
        arguments.append(Traced(argument, sizes, value.dtype, value.history.step(step, sizes, span), value.trace))
    return region, arguments


def _result(where: str, like: Traced, value: Any, operands: Sequence[Traced]) -> Traced:
    return primitives.result_of(where, value, operands or [like])


def _expect_alike(
    what: str, first: tuple[str, Sequence[Traced], Any], second: tuple[str, Sequence[Traced], Any]
) -> None:
    """Two trees of values must have one structure, and leaves of one type."""
    name, values, structure = first
    other, others, its_structure = second
    if structure != its_structure:
        raise TesseraError(
            f"{what} must keep one structure",
            shapes=[f"{name}: {structure}", f"{other}: {its_structure}"],
            hint="give the same nesting of tuples, lists and dictionaries",
        )
    for index, (one, two) in enumerate(zip(values, others, strict=True)):
        if one.value.type == two.value.type:
            continue
        leaf = f"leaf {index} of " if len(values) > 1 else ""
        shapes = [f"{leaf}{name}: {_shown(one)}", f"{leaf}{other}: {_shown(two)}"]
        story = dict.fromkeys((*one.history.lines(), *two.history.lines()))
        if one.sizes != two.sizes:
            raise ShapeError(
                f"{what} must keep one shape: {format_shape(one.sizes)} became {format_shape(two.sizes)}",
                shapes=shapes,
                story=tuple(story),
                hint="a program is traced once, so that each iteration and branch gives the same shapes",
            )
        raise DtypeError(
            f"{what} must keep one dtype: {one.dtype} became {two.dtype}",
            shapes=shapes,
            story=tuple(story),
            hint=f"cast it: ts.astype(value, {one.dtype})",
        )


def _shown(value: Traced) -> str:
    return f"{format_shape(value.sizes)} of {value.dtype}"


def _length(slices: Sequence[Traced], length: Any) -> Size:
    """How often a scan's body runs."""
    found: Size | None = None if length is None else plain_size(length)
    for value in slices:
        if not value.sizes:
            raise ShapeError(
                "scan: xs has an array without axes, which has no slices",
                story=value.history.lines(),
                hint="let f see it from outside, or repeat it along a first axis",
            )
        if found is not None and found != value.sizes[0]:
            raise ShapeError(
                f"scan: all of xs have one length: {found} and {value.sizes[0]}",
                shapes=[_shown(one) for one in slices],
                story=value.history.lines(),
                hint="slice or pad them along their first axis",
            )
        found = value.sizes[0]
    if found is None:
        raise ShapeError("scan: neither xs nor length says how often", hint="give length=")
    return found
