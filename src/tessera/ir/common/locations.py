"""Source spans as IR locations and back: a start, and an end where it is known."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    FileLineColLoc,
    FusedLoc,
    IntAttr,
    LocationAttr,
    NoneAttr,
    StringAttr,
    UnknownLoc,
)
from xdsl.ir import Attribute

from tessera.errors import SourceSpan


def location_of(span: SourceSpan | None) -> LocationAttr:
    """The location that carries a source span; its end, where known, is fused to its start."""
    if span is None:
        return UnknownLoc()
    start = _point(span.file, span.line, span.column)
    if span.end_column is None:
        return start
    end = _point(span.file, span.line if span.end_line is None else span.end_line, span.end_column)
    return FusedLoc((start, end), NoneAttr())


def span_of(location: LocationAttr) -> SourceSpan | None:
    """The source span of an op's location, if it has one."""
    if isinstance(location, FileLineColLoc):
        return SourceSpan(location.filename.data, location.line.data, location.column.data)
    if isinstance(location, FusedLoc):
        points = [
            point for point in cast("ArrayAttr[Attribute]", location.locations) if isinstance(point, FileLineColLoc)
        ]
        if len(points) == 2 and points[0].filename == points[1].filename:
            start, end = points
            return SourceSpan(start.filename.data, start.line.data, start.column.data, end.line.data, end.column.data)
    return None


def _point(file: str, line: int, column: int) -> FileLineColLoc:
    return FileLineColLoc(StringAttr(file), IntAttr(line), IntAttr(column))
