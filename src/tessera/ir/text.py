"""IR as text and back, with versions; verification that answers in the user's terms."""

from __future__ import annotations

import io
import re
import struct
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import Any, NoReturn

from xdsl.context import Context
from xdsl.dialects import arith, builtin, scf
from xdsl.dialects.builtin import (
    DictionaryAttr,
    Float80Type,
    Float128Type,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    UnknownLoc,
    i64,
)
from xdsl.ir import Dialect, Operation, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.parser import Parser, ParserState
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError, VerifyException
from xdsl.utils.lexer import Input
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRToken, MLIRTokenKind, StringLiteral

from tessera.errors import CompileError, SourceSpan
from tessera.ir.common import attributes
from tessera.ir.common.checking import check, operands_of
from tessera.ir.common.locations import location_of, span_of
from tessera.ir.graph import dialect as graph
from tessera.ir.schedule import dialect as schedule
from tessera.ir.tile import dialect as tile

OWN_DIALECTS: tuple[Dialect, ...] = (attributes.Ts, graph.Graph, schedule.Schedule, tile.Tile)
VERSIONS: dict[str, int] = {
    "ts": attributes.VERSION,
    "graph": graph.VERSION,
    "schedule": schedule.VERSION,
    "tile": tile.VERSION,
}
_VERSIONS_KEY = "ts.versions"


def new_context(dialects: Iterable[Dialect] = OWN_DIALECTS) -> Context:
    """A context that knows our dialects, by default those of this layer, and the scalar ones they build on."""
    context = Context()
    for dialect in (builtin.Builtin, arith.Arith, scf.Scf, *dialects):
        context.load_dialect(dialect)
    return context


def stamp(module: ModuleOp, versions: Mapping[str, int] = VERSIONS) -> ModuleOp:
    """Writes the dialect versions into the module."""
    written = {name: IntegerAttr(version, i64) for name, version in versions.items()}
    module.attributes[_VERSIONS_KEY] = DictionaryAttr(written)
    return module


def read(
    text: str, name: str = "<text>", *, context: Context | None = None, versions: Mapping[str, int] = VERSIONS
) -> ModuleOp:
    """Parses and verifies IR text. Ops without a location get their span in this text.

    Layers above read their own dialects, too, with a context that knows them and `versions` that name them.
    """
    progress = _Progress(text, name)
    try:
        module = _PlacingParser(context or new_context(), progress).parse_module()
    except ParseError as error:
        raise _unreadable(error.msg, progress.blame(error.span.start, error.msg)) from error
    except (VerifyException, *_CARELESS) as error:
        # struct words this differently in every version of Python.
        message = "a number does not fit its type" if isinstance(error, struct.error) else str(error)
        message = message or type(error).__name__
        raise _unreadable(" ".join(message.splitlines()), progress.span_at(progress.start)) from error
    if isinstance(module.location, UnknownLoc):
        module.location = location_of(progress.span_at(0))
    _check_versions(module, name, versions)
    verify(module, trusted=False)
    return module


class _Writer(Printer):
    """xDSL's printer; of `scf.while` it writes one location, at the end, where its parser looks for it."""

    def print_operation_type(self, op: Operation) -> None:
        if isinstance(op, scf.WhileOp):
            self.print_function_type(op.operand_types, op.result_types)
        else:
            super().print_operation_type(op)


def write(module: Operation, *, locations: bool = False) -> str:
    """The module as text, optionally with the source location of every op."""
    stream = io.StringIO()
    _Writer(stream, print_debuginfo=locations).print_op(module)
    return stream.getvalue() + "\n"


def verify(module: Operation, *, trusted: bool = True) -> None:
    """Checks every op; the first that fails is reported at its source location.

    Ops look at what they call, which may stand further on. Where they were not made by their constructors, all must be
    seen to have the parts they are declared with before any of them looks.
    """
    if not trusted:
        _report(list(_innermost_first(module)), _verify_definition)
    ops: list[Operation] = []
    _verify_uses(module, set(module.operands), ops)
    _report(ops, check)


def _report(ops: Sequence[Operation], rule: Callable[[Operation], None]) -> None:
    op = ops[0]
    try:
        for op in ops:
            rule(op)
    except Exception as error:
        # To report an error xDSL prints the op, and what is malformed may not print.
        cause = error if isinstance(error, VerifyException) else error.__context__
        if not isinstance(cause, VerifyException):
            raise
        raise _refusal(op, " ".join(str(cause).splitlines())) from cause


def _refusal(op: Operation, message: str) -> CompileError:
    return CompileError(
        f"{op.name}: {_shortened(message)}",
        span=span_of(op.location),
        shapes=[f"%{number}: {operand.type}" for number, operand in enumerate(op.operands)],
        hint=f"see docs/{op.name.partition('.')[0]}.md for what {op.name} expects",
    )


def _verify_definition(op: Operation) -> None:
    """Operands, results, regions and properties are of the number and kind that the op is declared with."""
    if not isinstance(op, IRDLOperation):
        return
    definition = op.get_irdl_definition()
    definition.verify(op)
    if hidden := op.attributes.keys() & definition.properties.keys():
        raise VerifyException(f"{min(hidden)} is a property of {op.name}; an attribute may not have its name")
    if isinstance(op, arith.CmpiOp | arith.CmpfOp):
        # xDSL looks at the predicate only when it writes it.
        named = arith.CMPI_COMPARISON_OPERATIONS if isinstance(op, arith.CmpiOp) else arith.CMPF_COMPARISON_OPERATIONS
        if not 0 <= op.predicate.value.data < len(named):
            raise VerifyException(f"predicate is {op.predicate.value.data}, and there are 0 to {len(named) - 1}")


def _verify_uses(op: Operation, visible: set[SSAValue], ops: list[Operation]) -> None:
    """Values are defined before they are used, in the same block or in one around it. Lists ops, innermost first."""
    if not visible.issuperset(operands_of(op)):
        number = next(number for number, operand in enumerate(op.operands) if operand not in visible)
        raise _refusal(op, f"operand {number} is used where it is not yet defined")
    for region in op.regions:
        for block in region.blocks:
            visible.update(block.args)
            defined: list[SSAValue] = list(block.args)
            for inner in block.ops:
                _verify_uses(inner, visible, ops)
                visible.update(inner.results)
                defined += inner.results
            visible.difference_update(defined)
    ops.append(op)


# What xDSL's own parser lets escape when a number does not fit its type, when text is nested too deep or asks for more
# memory than there is.
_CARELESS = (ArithmeticError, ValueError, NotImplementedError, RecursionError, MemoryError, struct.error)
_LONGEST_NAME = 4096
_INTEGER_TYPE = re.compile(r"[su]?i([0-9]+)\Z")
_WIDEST_INTEGER = 1 << 16
_LITERAL_ELEMENTS = 1 << 18
_LONGEST_MESSAGE = 400
_UNDEFINED = re.compile(r"not defined: \[(%[^],]+)")
_SPACE_BEHIND = re.compile(r"(?:\s|//[^\n]*\n)+\Z")


class _Progress:
    """A text and how far its reading has come: `start` is where the op that is being read begins."""

    def __init__(self, text: str, name: str) -> None:
        self.text, self.name, self.start = text, name, 0
        self._lines = [0, *(found.end() for found in re.finditer("\n", text))]

    def span_at(self, position: int) -> SourceSpan:
        line = bisect_right(self._lines, position)
        return SourceSpan(self.name, line, position - self._lines[line - 1])

    def blame(self, noticed: int, message: str) -> SourceSpan:
        """The span of a mistake, which is often noticed only at the token behind it."""
        if undefined := _UNDEFINED.search(message):
            found = re.search(rf"^(?!\s*//).*?({re.escape(undefined[1])})\b", self.text, re.MULTILINE)
            return self.span_at(noticed if found is None else found.start(1))
        span, begin = self.span_at(noticed), self.span_at(self.start)
        first_in_line = not self.text[noticed - span.column : noticed].strip()
        if first_in_line and begin.line < span.line:
            return self.span_at(max(self.start, len(_SPACE_BEHIND.sub("", self.text[:noticed])) - 1))
        return span


class _Lexer(MLIRLexer):
    """xDSL's, but it takes time in proportion to the text.

    Theirs tries two to the power of a string's length where that has no end; and it reads the names in `1x1x…x1xf32`
    once from each `x` on.
    """

    _unescaped_characters_regex = re.compile(r'"[^"\\\n\v\f]*(?:\\(?:["nt\\]|[0-9A-Fa-f]{2})[^"\\\n\v\f]*)*"')

    def _lex_bare_identifier(self, start_pos: int) -> MLIRToken:
        token = super()._lex_bare_identifier(start_pos)
        if len(token.span) > _LONGEST_NAME:
            raise ParseError(token.span, f"a name of {len(token.span)} characters; at most {_LONGEST_NAME} are read")
        wide = _INTEGER_TYPE.match(self.input.content, start_pos, self.pos)
        if wide is not None and (len(wide[1]) > len(str(_WIDEST_INTEGER)) or int(wide[1]) > _WIDEST_INTEGER):
            raise ParseError(token.span, f"integers have at most {_WIDEST_INTEGER} bits here")
        return token


class _PlacingParser(Parser):
    """Tells each op that has no location where it stands in the text."""

    def __init__(self, context: Context, progress: _Progress) -> None:
        self.progress = progress
        self._literal_elements = 0
        super().__init__(context, "", progress.name)
        self._parser_state = ParserState(_Lexer(Input(progress.text, progress.name)))

    def parse_operation(self) -> Operation:
        outer, self.progress.start = self.progress.start, self.pos
        op = super().parse_operation()
        if isinstance(op.location, UnknownLoc):
            op.location = location_of(self.progress.span_at(self.progress.start))
        self.progress.start = outer
        return op

    def parse_optional_builtin_int_or_float_attr(self) -> IntegerAttr | FloatAttr | None:
        # Of these types xDSL reads numbers, and can neither write them nor tell two of them apart.
        found = super().parse_optional_builtin_int_or_float_attr()
        if isinstance(found, FloatAttr) and isinstance(found.type, Float80Type | Float128Type):
            self.raise_error(f"{found.type} is not a Tessera element type")
        return found

    def parse_affine_map(self) -> NoReturn:
        self.raise_error("affine maps are no part of these dialects")

    def parse_affine_set(self) -> NoReturn:
        self.raise_error("affine sets are no part of these dialects")

    def _parse_dense_literal_type(self) -> Any:
        # One number may stand for as many as its type says: few characters would take all memory.
        found = super()._parse_dense_literal_type()
        self._literal_elements += prod(found.get_shape())
        if self._literal_elements > max(_LITERAL_ELEMENTS, len(self.progress.text)):
            self.raise_error(f"the literals of one text have more than {_LITERAL_ELEMENTS} elements")
        return found

    def parse_optional_str_literal(self) -> str | None:
        # The lexer takes strings with escapes beyond ASCII for bytes; here every string is text.
        if self._current_token.kind is not MLIRTokenKind.BYTES_LIT:
            return super().parse_optional_str_literal()
        try:
            literal = StringLiteral.from_span(self._current_token.span).string_contents
        except UnicodeDecodeError:
            return None
        self._consume_token()
        return literal


def _unreadable(message: str, span: SourceSpan) -> CompileError:
    return CompileError(
        f"cannot read IR: {_shortened(message)}",
        span=span,
        hint="the text was written by hand or by another version; see docs/ for the syntax of each op",
    )


def _shortened(message: str) -> str:
    """Messages have names and numbers of the text in them, and these may be long."""
    half = _LONGEST_MESSAGE // 2
    return message if len(message) <= _LONGEST_MESSAGE else f"{message[:half]} … {message[-half:]}"


def _innermost_first(op: Operation) -> Iterator[Operation]:
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                yield from _innermost_first(inner)
    yield op


def _check_versions(module: ModuleOp, name: str, versions: Mapping[str, int]) -> None:
    stamped = module.attributes.get(_VERSIONS_KEY)
    if stamped is None:
        return
    if not isinstance(stamped, DictionaryAttr):
        raise CompileError(f"{_VERSIONS_KEY} must be a dictionary of integers", span=SourceSpan(name, 1))
    for dialect, version in stamped.data.items():
        number = version.value.data if isinstance(version, IntegerAttr) else version
        if versions.get(dialect) != number:
            raise CompileError(
                f"this text uses version {number} of the {dialect} dialect; this Tessera reads {versions.get(dialect)}",
                span=SourceSpan(name, 1),
                hint="use the Tessera that wrote it, or build the IR again from source",
            )
