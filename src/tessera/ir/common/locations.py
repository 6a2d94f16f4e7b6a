"""Source spans as IR locations and back: a start, an end where it is known, and the call of a helper."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    CallSiteLoc,
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
    """The location that carries a source span; its end, where known, is fused to its start.

    In a helper it is a call site: the span, and that of the call, which may be in a helper itself.
    """
    if span is None:
        return UnknownLoc()
    if span.caller is not None:
        return CallSiteLoc(location_of(replace(span, caller=None)), location_of(span.caller))
    start = _point(span.file, span.line, span.column)
    if span.end_column is None:
        return start
    end = _point(span.file, span.line if span.end_line is None else span.end_line, span.end_column)
    return FusedLoc((start, end), NoneAttr())


def span_of(location: LocationAttr) -> SourceSpan | None:
    """The source span of an op's location, if it has one; it knows the caller, if that does."""
    if isinstance(location, CallSiteLoc):
        callee, caller = (span_of(cast(LocationAttr, one)) for one in (location.callee, location.caller))
        return callee if callee is None or callee.caller is not None else replace(callee, caller=caller)
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
