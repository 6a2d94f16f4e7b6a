"""`checkpoint`: a function whose gradient computes again what it would have kept."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tessera.errors import TesseraError, caller_span
from tessera.lang.derivatives import Function, Tree, ends_of, traced
from tessera.lang.tracing import primitives
from tessera.lang.tracing.arithmetic import tensor
from tessera.lang.tracing.graph_modules import Deferred, control
from tessera.lang.tracing.values import Traced, current, current_or_none, is_array
from tessera.runtime.tensor.pytree import tree_flatten, tree_map, tree_unflatten

if TYPE_CHECKING:
    from tessera.transforms.derivatives import checkpoints
else:
    checkpoints = Deferred("tessera.transforms.derivatives.checkpoints")

_POLICIES = ("nothing", "products", "everything")


def checkpoint(function: Function, policy: str | Sequence[str] = "nothing") -> Function:
    """The same function; its gradient computes again what it made on the way, but for what `policy` keeps.

    "nothing" keeps the arguments alone, "products" also what matmuls give, and a list of names what `keep_as` named.
    What is drawn from the random stream is kept, and effects happen once.
    """
    names = policy if isinstance(policy, str) else ",".join(policy)
    if isinstance(policy, str) and policy not in _POLICIES:
        raise TesseraError(
            f"checkpoint: there is no policy {policy!r}",
            span=caller_span(),
            hint=f"policies are {', '.join(_POLICIES)}, or a list of names that ts.keep_as gives",
        )

    @functools.wraps(function)
    def checkpointed(*args: Tree, **kwargs: Tree) -> Tree:
        if current_or_none() is None:
            return function(*args, **kwargs)
        trace = current()
        ends_of(trace)
        region = control.body_of([])
        with trace.within(region.block):
            leaves, structure = tree_flatten(function(*args, **kwargs))
            places = [index for index, leaf in enumerate(leaves) if _is_value(leaf)]
            values = [tensor(leaves[index]) for index in places]
            primitives.write(control.YieldOp([one.value for one in values]))
        op = checkpoints.CheckpointOp(names, [one.value.type for one in values], region)
        primitives.write(op)
        for place, result, value in zip(places, op.results_, values, strict=True):
            leaves[place] = traced(result, value.history, trace)
        return tree_unflatten(structure, leaves)

    return checkpointed


remat = checkpoint


def keep_as(tree: Tree, name: str) -> Tree:
    """The same values, with a name by which `checkpoint` may keep them."""
    if current_or_none() is None:
        return tree
    if not name or "," in name or name in _POLICIES:
        raise TesseraError(
            f"keep_as: {name!r} cannot be a name", span=caller_span(), hint="give a word that is no policy's"
        )
    ends_of(current())

    def named(leaf: Tree) -> Tree:
        if not isinstance(leaf, Traced):
            return leaf
        return primitives.emit("keep_as", lambda values: checkpoints.NamedOp(name, values[0]), leaf, weak=leaf.weak)

    return tree_map(named, tree)


def _is_value(leaf: Tree) -> bool:
    return isinstance(leaf, Traced | float) or is_array(leaf)
