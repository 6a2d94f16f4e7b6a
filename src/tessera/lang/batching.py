"""`vmap`: a function of one example as a function of a batch; and the matrices of derivatives that follow from it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tessera.dtypes.types import i64
from tessera.errors import ShapeError, TesseraError, caller_span
from tessera.lang.derivatives import Function, Tree, chosen_arguments, discard, ends_of, jitted, jvp, traced, vjp
from tessera.lang.jit import Jitted
from tessera.lang.tracing import primitives
from tessera.lang.tracing.arithmetic import tensor
from tessera.lang.tracing.graph_modules import Deferred
from tessera.lang.tracing.shape_rules import ruled
from tessera.lang.tracing.values import Traced, current, is_array
from tessera.runtime.tensor.pytree import tree_flatten, tree_map, tree_unflatten
from tessera.shapes import rules
from tessera.shapes.expr import Size, element_count, format_shape

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

    from tessera.ir.graph.types import GraphTensorType
    from tessera.transforms.derivatives import batch
else:
    batch = Deferred("tessera.transforms.derivatives.batch")


def vmap(function: Function, in_axes: Tree = 0, out_axes: Tree = 0) -> Jitted:
    """The function for a batch, from one that is written for one example.

        ts.vmap(lambda row: ts.dot(row, row))(rows)

    `in_axes`: for all arguments or each, at any depth of their nesting, the axis of the batch; None where an argument
    has none, and all of the batch see it whole. `out_axes`: where results have it.
    """

    def mapped(*args: Tree, **kwargs: Tree) -> Tree:
        return _mapped(function, in_axes, out_axes, args, kwargs)

    key = (str(in_axes), str(out_axes))
    return jitted(mapped, function, "vmap", key)


def jacfwd(function: Function, argnums: int | Sequence[int] = 0) -> Jitted:
    """The matrix of derivatives of each result by each argument, forwards: for few arguments.

    Its shape is that of the result, then that of the argument.
    """

    def derived(*args: Tree, **kwargs: Tree) -> Tree:
        of, chosen = _of_arguments(function, "jacfwd", argnums, args, kwargs)
        leaves, structure = tree_flatten(chosen)
        columns: list[Tree] = []
        for index, leaf in enumerate(leaves):
            value = tensor(leaf)

            def along(tangent: Traced, index: int = index) -> Tree:
                zeros = [primitives.constant(0, tensor(one).sizes, tensor(one).dtype) for one in leaves]
                zeros[index] = tangent
                return jvp(of, chosen, tree_unflatten(structure, zeros))[1]

            columns.append(_mapped(along, 0, -1, (_basis(value),), {}))
            columns[-1] = tree_map(functools.partial(_last_as, value.sizes), columns[-1])
        return _by_arguments(columns, structure, argnums)

    return jitted(derived, function, "jacfwd", (_key(argnums),))


def jacrev(function: Function, argnums: int | Sequence[int] = 0) -> Jitted:
    """The matrix of derivatives of each result by each argument, backwards: for few results.

    Its shape is that of the result, then that of the argument.
    """

    def derived(*args: Tree, **kwargs: Tree) -> Tree:
        of, chosen = _of_arguments(function, "jacrev", argnums, args, kwargs)
        result, pullback = vjp(of, *chosen)
        leaves, structure = tree_flatten(result)
        rows: list[list[Tree]] = []
        for index, leaf in enumerate(leaves):

            def back(cotangent: Traced, index: int = index) -> Tree:
                zeros = [primitives.constant(0, one.sizes, one.dtype) for one in leaves]
                zeros[index] = cotangent
                return pullback(tree_unflatten(structure, zeros))

            found = tree_flatten(_mapped(back, 0, 0, (_basis(leaf),), {}))[0]
            rows.append([_first_as(one, leaf.sizes) for one in found])
        count = len(rows[0]) if rows else 0
        columns = [tree_unflatten(structure, [row[index] for row in rows]) for index in range(count)]
        return _by_arguments(columns, tree_flatten(chosen)[1], argnums)

    return jitted(derived, function, "jacrev", (_key(argnums),))


def hessian(function: Function, argnums: int | Sequence[int] = 0) -> Jitted:
    """The second derivatives of a function that gives one float: forwards over backwards."""
    return jacfwd(jacrev(function, argnums), argnums)


def _key(argnums: int | Sequence[int]) -> int | tuple[int, ...]:
    return argnums if isinstance(argnums, int) else tuple(argnums)


def _of_arguments(
    function: Function, name: str, argnums: int | Sequence[int], args: Sequence[Tree], kwargs: dict[str, Tree]
) -> tuple[Function, tuple[Tree, ...]]:
    """The function of the chosen arguments alone, and these."""
    places = chosen_arguments(function, name, argnums, len(args))

    def of(*chosen: Tree) -> Tree:
        given = list(args)
        for place, one in zip(places, chosen, strict=True):
            given[place] = one
        return function(*given, **kwargs)

    return of, tuple(args[place] for place in places)


def _by_arguments(columns: Sequence[Tree], structure: Tree, argnums: int | Sequence[int]) -> Tree:
    """For each leaf of a result a tree of arguments, from a tree of results for each leaf of the arguments."""
    trees = [tree_flatten(one) for one in columns]
    outer = trees[0][1]
    found: list[Tree] = []
    for leaves in zip(*[one[0] for one in trees], strict=True):
        arguments = tree_unflatten(structure, list(leaves))
        found.append(arguments[0] if isinstance(argnums, int) else arguments)
    return tree_unflatten(outer, found)


def _basis(value: Traced) -> Traced:
    """For each element of a value the array that is 1 there, else 0, one after the other."""
    count = element_count(value.sizes)
    rows, columns = (primitives.iota((count, count), axis, i64) for axis in (0, 1))
    ones = primitives.cast(primitives.ew("eq", rows, columns), value.dtype)
    return primitives.reshape(ones, (count, *value.sizes))


def _last_as(sizes: Sequence[Size], value: Traced) -> Traced:
    """The last axis cut into several."""
    return primitives.reshape(value, (*value.sizes[:-1], *sizes))


def _first_as(value: Traced, sizes: Sequence[Size]) -> Traced:
    return primitives.reshape(value, (*sizes, *value.sizes[1:]))


# The walk


def _mapped(function: Function, in_axes: Tree, out_axes: Tree, args: Sequence[Tree], kwargs: dict[str, Tree]) -> Tree:
    from xdsl.ir import Block

    trace = current()
    ends_of(trace)
    leaves, structure = tree_flatten((tuple(args), kwargs))
    axes = _axes(in_axes, tuple(args), "in_axes")
    axes += [0 if is_array(leaf) or isinstance(leaf, Traced) else None for leaf in tree_flatten(kwargs)[0]]
    block = Block()
    count: Size | None = None
    values: dict[SSAValue, batch.Item] = {}
    rebuilt = list(leaves)
    for index, (leaf, axis) in enumerate(zip(leaves, axes, strict=True)):
        if axis is None:
            continue
        value = _with_axis(leaf, axis)
        if count is not None and value.sizes[0] != count:
            if not (isinstance(count, int) and isinstance(value.sizes[0], int)):  # unless they are found to be one
                ruled(rules.broadcast, (count,), (value.sizes[0],), where="vmap", histories=[value.history] * 2)
            raise ShapeError(
                f"vmap: arguments have batches of {count} and {value.sizes[0]}",
                shapes=[f"{format_shape(value.sizes)} of {value.dtype}"],
                story=value.history.lines(),
                hint="give axes of one length, or None in in_axes for what all of the batch see whole",
            )
        count = value.sizes[0]
        inner = block.insert_arg(_of_one(value), len(block.args))
        values[inner] = (value.value, True)
        rebuilt[index] = traced(inner, value.history, trace)
    if count is None:
        raise TesseraError("vmap: no argument has an axis of the batch", hint="let in_axes name one")
    with trace.within(block):
        given, named = tree_unflatten(structure, rebuilt)
        result = function(*given, **named)
        found, outer = tree_flatten(result)
        results = [
            tensor(one) if isinstance(one, Traced | bool | int | float) or is_array(one) else one for one in found
        ]
    walk = batch.Batch(trace.block, count, trace.sizes.intervals, values)
    with trace.writing(trace.block, []):
        walk.run(block)
    places = _axes(out_axes, result, "out_axes")
    made: list[Tree] = []
    for one, place in zip(results, places, strict=True):
        if not isinstance(one, Traced):
            made.append(one)
            continue
        item = walk.item(trace.now(one.value))
        if place is None:
            if item[1]:
                raise TesseraError(
                    "vmap: out_axes is None for a result that differs within the batch",
                    span=caller_span(),
                    hint="name the axis at which the batch shall be",
                )
            made.append(traced(item[0], one.history, trace))
            continue
        whole = traced(walk.dense(item), one.history, trace)
        made.append(_moved(whole, 0, place))
    discard(block)
    return tree_unflatten(outer, made)


def _axes(given: Tree, tree: Tree, what: str) -> list[int | None]:
    """For each leaf its axis: a number or None stands for all leaves below."""
    leaves, structure = tree_flatten(tree)
    if given is None or isinstance(given, int):
        return [given if is_array(leaf) or isinstance(leaf, Traced | float | int) else None for leaf in leaves]
    import optree

    try:
        spread = optree.broadcast_prefix(given, tree, is_leaf=lambda one: one is None, namespace="tessera")
    except ValueError as problem:
        raise TesseraError(
            f"vmap: {what} does not nest as the values do: {problem}",
            shapes=[f"{what}: {given}", f"values: {structure}"],
            hint="give a number or None for each argument, or one for all",
        ) from None
    return spread


def _with_axis(leaf: Tree, axis: int) -> Traced:
    """A value with the axis of the batch in front."""
    value = tensor(leaf)
    if not -len(value.sizes) <= axis < len(value.sizes):
        raise ShapeError(
            f"vmap: an argument has no axis {axis} for the batch",
            shapes=[f"{format_shape(value.sizes)} of {value.dtype}"],
            story=value.history.lines(),
            hint="let in_axes be None for it, so that all of the batch see it whole",
        )
    return _moved(value, axis % len(value.sizes), 0)


def _of_one(value: Traced) -> GraphTensorType:
    return primitives.tensor_type(value.sizes[1:], value.dtype)


def _moved(value: Traced, source: int, target: int) -> Traced:
    rank = len(value.sizes)
    if not -rank <= target < rank:
        raise ShapeError(
            f"vmap: out_axes={target} for a result that has {rank} axes with that of the batch",
            shapes=[f"{format_shape(value.sizes)} of {value.dtype}"],
            story=value.history.lines(),
            hint="count axes of the result with that of the batch",
        )
    order = [axis for axis in range(rank) if axis != source]
    order.insert(target % rank, source)
    return primitives.transpose(value, order)
