"""IR as text and back, with versions; verification that answers in the user's terms."""

from __future__ import annotations

import io
from collections.abc import Iterator

from xdsl.context import Context
from xdsl.dialects import arith, builtin, scf
from xdsl.dialects.builtin import DictionaryAttr, FileLineColLoc, IntegerAttr, LocationAttr, ModuleOp, i64
from xdsl.ir import Dialect, Operation
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError, VerifyException

from tessera.dialects import attributes, graph, schedule, tile
from tessera.errors import CompileError, SourceSpan

OWN_DIALECTS: tuple[Dialect, ...] = (attributes.Ts, graph.Graph, schedule.Schedule, tile.Tile)
VERSIONS: dict[str, int] = {
    "ts": attributes.VERSION,
    "graph": graph.VERSION,
    "schedule": schedule.VERSION,
    "tile": tile.VERSION,
}
_VERSIONS_KEY = "ts.versions"


def new_context() -> Context:
    """A context that knows our dialects and the scalar ones they build on."""
    context = Context()
    for dialect in (builtin.Builtin, arith.Arith, scf.Scf, *OWN_DIALECTS):
        context.load_dialect(dialect)
    return context


def stamp(module: ModuleOp) -> ModuleOp:
    """Writes the dialect versions into the module."""
    versions = {name: IntegerAttr(version, i64) for name, version in VERSIONS.items()}
    module.attributes[_VERSIONS_KEY] = DictionaryAttr(versions)
    return module


def read(text: str, name: str = "<text>", *, context: Context | None = None) -> ModuleOp:
    """Parses and verifies IR text. Ops without a location get their place in this text."""
    try:
        module = Parser(context or new_context(), text, name).parse_module()
    except ParseError as error:
        raise CompileError(
            f"cannot read IR: {error.msg}",
            span=_place(text, name, error.span.start),
            hint="the text was written by hand or by another version; see docs/ for the syntax of each op",
        ) from error
    except VerifyException as error:
        raise CompileError(f"cannot read IR: {error}", span=SourceSpan(name, 1)) from error
    _check_versions(module, name)
    verify(module)
    return module


def write(module: Operation, *, locations: bool = False) -> str:
    """The module as text, optionally with the source location of every op."""
    stream = io.StringIO()
    Printer(stream, print_debuginfo=locations).print_op(module)
    return stream.getvalue() + "\n"


def verify(module: Operation) -> None:
    """Checks every op; the first that fails is reported at its source location."""
    for op in _innermost_first(module):
        try:
            op.verify(verify_nested_ops=False)
        except VerifyException as error:
            raise CompileError(
                f"{op.name}: {str(error).splitlines()[0]}",
                span=span_of(op.location),
                shapes=[f"%{number}: {operand.type}" for number, operand in enumerate(op.operands)],
                hint=f"see docs/{op.name.partition('.')[0]}.md for what {op.name} expects",
            ) from error


def span_of(location: LocationAttr) -> SourceSpan | None:
    """The source span of an op's location, if it has one."""
    match location:
        case FileLineColLoc():
            return SourceSpan(location.filename.data, location.line.data, location.column.data)
        case _:
            return None


def location_of(span: SourceSpan | None) -> LocationAttr:
    """The location that carries a source span."""
    if span is None:
        return builtin.UnknownLoc()
    return FileLineColLoc(builtin.StringAttr(span.file), builtin.IntAttr(span.line), builtin.IntAttr(span.column))


def _place(text: str, name: str, position: int) -> SourceSpan:
    before = text[:position]
    return SourceSpan(name, before.count("\n") + 1, len(before) - (before.rfind("\n") + 1))


def _innermost_first(op: Operation) -> Iterator[Operation]:
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                yield from _innermost_first(inner)
    yield op


def _check_versions(module: ModuleOp, name: str) -> None:
    stamped = module.attributes.get(_VERSIONS_KEY)
    if stamped is None:
        return
    if not isinstance(stamped, DictionaryAttr):
        raise CompileError(f"{_VERSIONS_KEY} must be a dictionary of integers", span=SourceSpan(name, 1))
    for dialect, version in stamped.data.items():
        number = version.value.data if isinstance(version, IntegerAttr) else version
        if VERSIONS.get(dialect) != number:
            raise CompileError(
                f"this text uses version {number} of the {dialect} dialect; this Tessera reads {VERSIONS.get(dialect)}",
                span=SourceSpan(name, 1),
                hint="use the Tessera that wrote it, or build the IR again from source",
            )
