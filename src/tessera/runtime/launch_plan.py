"""Launch plans: what has to be known of a compiled program, besides its machine code, to run it on given arrays.

A plan holds sizes and the grid as expressions over the arguments' sizes, so one plan serves all arrays that its program
does. As text it is JSON, for the compile cache; reading it needs neither the IR nor LLVM.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from tessera.dtypes.types import BY_NAME, DType
from tessera.errors import CompileError, DtypeError, ShapeError, SourceSpan, TesseraError
from tessera.shapes.environment import Origin, ShapeEnvironment
from tessera.shapes.expr import Shape, Size, dim, size

Sizes: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ArrayArgument:
    """An array: its address, sizes and strides are in the words of the args block from `word` on."""

    word: int
    dtype: DType
    shape: Shape
    written: bool


@dataclass(frozen=True, slots=True)
class NumberArgument:
    """A number of a kind that launches know, in one word."""

    word: int
    kind: str


@dataclass(frozen=True, slots=True)
class Failure:
    """What a program reports when it stops: the words, and the source that it was compiled from.

    `check` names the safety check that noticed, if one did: the knob `checks` has them.
    """

    message: str
    span: SourceSpan | None
    check: str | None = None

    def error(self) -> TesseraError:
        """The error, of the class that the interpreter's check raises."""
        kind, hint = _ERRORS[self.check]
        return kind(self.message, span=self.span, hint=hint)


_ERRORS: Mapping[str | None, tuple[type[TesseraError], str | None]] = {
    None: (CompileError, None),
    "bounds": (
        ShapeError,
        "a block may reach over the end, but starts inside: check the grid, the block size and the offset",
    ),
    "nan": (DtypeError, "mask or clamp the operands with tile.where before this op, or turn the check off"),
}


@dataclass(frozen=True)
class Plan:
    """How to run one program. The last `fresh` arguments are arrays that each call makes anew: the results.

    `failures[status - 1]` is what a status means. `grid_word` and `words` belong to the layout of the args block.
    `ordered` says that the order in which programs of the grid run shows in the last bits: they add floats to memory.
    """

    name: str
    arguments: tuple[ArrayArgument | NumberArgument, ...]
    fresh: int
    grid: Shape
    grid_word: int
    words: int
    failures: tuple[Failure, ...]
    ordered: bool = False

    @cached_property
    def inputs(self) -> tuple[ArrayArgument | NumberArgument, ...]:
        return self.arguments[: len(self.arguments) - self.fresh]

    @cached_property
    def results(self) -> tuple[ArrayArgument, ...]:
        found = self.arguments[len(self.arguments) - self.fresh :]
        return tuple(one for one in found if isinstance(one, ArrayArgument))

    def sizes(self, shapes: Sequence[Sizes | None]) -> dict[str, int]:
        """What the symbols stand for, given the shapes of the inputs; None for numbers."""
        known: dict[str, int] = {}
        others: list[tuple[Size, int, Origin]] = []
        for place, (argument, shape) in enumerate(zip(self.inputs, shapes, strict=True)):
            if not isinstance(argument, ArrayArgument) or shape is None:
                continue
            what = f"argument {place} of @{self.name}"
            if len(argument.shape) != len(shape):
                raise ShapeError(f"{what}: expected rank {len(argument.shape)}, got {len(shape)}")
            for axis, (expected, actual) in enumerate(zip(argument.shape, shape, strict=True)):
                if expected == actual or known.get(str(expected)) == actual:
                    continue
                if str(expected).isidentifier() and str(expected) not in known:
                    known[str(expected)] = actual
                else:
                    others.append((expected, actual, Origin(f"{what}, axis {axis}")))
        if not others:
            return known
        environment = ShapeEnvironment()
        for name, actual in known.items():
            environment.unify(name, actual, Origin(f"an argument of @{self.name}"))
        for expected, actual, origin in others:
            environment.unify(expected, actual, origin)
        return environment.sizes

    def result_shapes(self, sizes: Mapping[str, int]) -> list[Sizes]:
        """The shapes of the results."""
        return [_evaluated(result.shape, sizes) for result in self.results]

    def extents(self, sizes: Mapping[str, int]) -> Sizes:
        """The extents of the grid."""
        return _evaluated(self.grid, sizes)

    def encoded(self) -> dict[str, Any]:
        """The plan as JSON has it."""
        return {
            "name": self.name,
            "arguments": [
                [one.word, one.kind]
                if isinstance(one, NumberArgument)
                else [one.word, one.dtype.name, [str(part) for part in one.shape], one.written]
                for one in self.arguments
            ],
            "fresh": self.fresh,
            "grid": [str(part) for part in self.grid],
            "grid_word": self.grid_word,
            "words": self.words,
            "ordered": self.ordered,
            "failures": [
                [one.message, None if one.span is None else _encoded_span(one.span), one.check] for one in self.failures
            ],
        }

    @staticmethod
    def decoded(found: Mapping[str, Any]) -> Plan:
        """A plan as `encoded` wrote it; KeyError, TypeError or ValueError where it did not."""
        return Plan(
            found["name"],
            tuple(
                NumberArgument(*one)
                if len(one) == 2
                else ArrayArgument(one[0], BY_NAME[one[1]], _shape(one[2]), bool(one[3]))
                for one in found["arguments"]
            ),
            int(found["fresh"]),
            _shape(found["grid"]),
            int(found["grid_word"]),
            int(found["words"]),
            tuple(
                Failure(message, None if span is None else SourceSpan(*span), check)
                for message, span, check in found["failures"]
            ),
            bool(found["ordered"]),
        )


def _evaluated(shape: Shape, sizes: Mapping[str, int]) -> Sizes:
    missing = sorted(frozenset[str]().union(*(dim(part).symbols for part in shape)) - sizes.keys())
    if missing:
        raise ShapeError(f"the size {', '.join(missing)} of a result is not known from the arguments")
    return tuple(dim(part).evaluate(sizes) for part in shape)


def _shape(parts: Sequence[str]) -> Shape:
    return tuple(int(part) if part.isdecimal() else size(dim(part)) for part in parts)


def _encoded_span(span: SourceSpan) -> list[Any]:
    return [span.file, span.line, span.column, span.end_line, span.end_column]
