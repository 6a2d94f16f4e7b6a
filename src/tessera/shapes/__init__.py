"""Shapes with symbolic sizes: expressions, inference rules, unification, annotations and signatures."""

from tessera.shapes.annotations import KTile, TensorType, Tile, annotation
from tessera.shapes.environment import AtLeast, AtMost, DivisibleBy, Equal, Origin, ShapeEnvironment
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
from tessera.shapes.signature import Signature

__all__ = [
    "AtLeast",
    "AtMost",
    "Dim",
    "DivisibleBy",
    "Equal",
    "KTile",
    "Origin",
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
