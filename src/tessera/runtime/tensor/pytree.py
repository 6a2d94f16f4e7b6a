"""Pytrees: nested containers of tensors, flattened and rebuilt by optree in a namespace of our own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, TypeVar, cast

import optree
from optree import PyTreeSpec

from tessera.dtypes.types import DType
from tessera.errors import TesseraError
from tessera.runtime.tensor.quantized import QuantizedTensor

NAMESPACE = "tessera"

# Any nesting of lists, tuples, dicts, None and registered classes; everything else, tensors included, is a leaf.
Tree: TypeAlias = Any
Node = TypeVar("Node")


def tree_flatten(tree: Tree) -> tuple[list[Any], PyTreeSpec]:
    """The leaves of `tree` from left to right (dictionaries by sorted key), and what is needed to rebuild it."""
    return optree.tree_flatten(tree, namespace=NAMESPACE)


def tree_paths(tree: Tree) -> list[tuple[Any, ...]]:
    """For each leaf the keys, indices and names that lead to it."""
    return optree.tree_paths(tree, namespace=NAMESPACE)


def tree_unflatten(structure: PyTreeSpec, leaves: Iterable[Any]) -> Tree:
    """The tree with this structure and these leaves."""
    return optree.tree_unflatten(structure, leaves)


def tree_leaves(tree: Tree) -> list[Any]:
    """The leaves of `tree` from left to right."""
    return optree.tree_leaves(tree, namespace=NAMESPACE)


def tree_map(function: Callable[..., Any], tree: Tree, *others: Tree) -> Tree:
    """A tree like `tree` with `function` of its leaves, and of the corresponding leaves of `others`."""
    try:
        return optree.tree_map(function, tree, *others, namespace=NAMESPACE)
    except ValueError as problem:
        structures = {str(optree.tree_structure(each, namespace=NAMESPACE)) for each in (tree, *others)}
        if len(structures) == 1:
            raise
        raise TesseraError(
            f"the trees do not have one structure: {problem}", hint="give trees that nest in the same way"
        ) from None


def register_node(
    node: type[Node],
    flatten: Callable[[Node], tuple[Iterable[Any], Any]],
    unflatten: Callable[[Any, Iterable[Any]], Node],
) -> type[Node]:
    """Make objects of class `node` containers: `flatten` gives (children, rest), `unflatten` takes (rest, children)."""
    _register_in_optree(node, flatten, unflatten, namespace=NAMESPACE)
    return node


# optree asks for a Collection, which a dataclass with children need not be.
_register_in_optree = cast(Callable[..., Any], optree.register_pytree_node)


def _rebuild(dtype: DType, children: Iterable[Any]) -> QuantizedTensor:
    values, scales = children
    return QuantizedTensor(values, scales, dtype)


_register_in_optree(
    QuantizedTensor,
    lambda quantized: ((quantized.values, quantized.scales), quantized.dtype, ("values", "scales")),
    _rebuild,
    namespace=NAMESPACE,
)
