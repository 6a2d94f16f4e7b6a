"""Shapes with symbolic sizes: expressions, inference rules, unification, annotations and signatures."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tessera.shapes.annotations import KTile, Out, TensorType, Tile, annotation
from tessera.shapes.expr import (
    Dim,
    Shape,
    Size,
    ceil_div,
    dim,
    element_count,
    format_shape,
    known_multiple,
    parse_dim,
    shape_of,
    size,
)
from tessera.shapes.history import ShapeHistory

if TYPE_CHECKING:
    from tessera.shapes.environment import AtLeast, AtMost, DivisibleBy, Equal, Origin, ShapeEnvironment
    from tessera.shapes.signature import Signature

# Names that are imported when first used: eager tensors need none of them.
_LAZY = {
    **dict.fromkeys(
        ("AtLeast", "AtMost", "DivisibleBy", "Equal", "Origin", "ShapeEnvironment"), "tessera.shapes.environment"
    ),
    "Signature": "tessera.shapes.signature",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'tessera.shapes' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_LAZY[name]), name)
    return found


__all__ = [
    "AtLeast",
    "AtMost",
    "Dim",
    "DivisibleBy",
    "Equal",
    "KTile",
    "Origin",
    "Out",
    "Shape",
    "ShapeEnvironment",
    "ShapeHistory",
    "Signature",
    "Size",
    "TensorType",
    "Tile",
    "annotation",
    "ceil_div",
    "dim",
    "element_count",
    "format_shape",
    "known_multiple",
    "parse_dim",
    "shape_of",
    "size",
]
