"""Launch plans: what has to be known of a compiled program, besides its machine code, to run it on given arrays.

A plan holds sizes and the grid as expressions over sizes of arguments, so one plan serves all arrays that its program
does. Programs of a GPU have a `DeviceLaunch` too: threads, shared memory, tensor maps, workspaces. As text a plan is
JSON, for the compile cache; reading it needs neither the IR nor LLVM.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from tessera.cached_property import cached_property
from tessera.compiler.print_records import Print
from tessera.dtypes.types import BY_NAME, DType
from tessera.errors import CompileError, DtypeError, RangeError, ShapeError, SourceSpan, TesseraError
from tessera.shapes.conditions import Condition, Geometry, evaluate, frozen
from tessera.shapes.environment import Origin, ShapeEnvironment
from tessera.shapes.expr import Shape, Size, dim, evaluator, size
from tessera.shapes.grid_coverage import Cover
from tessera.shapes.symbols import Symbols
from tessera.shapes.tracked import counted

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
    """A failure that a program reports when it stops: the words, and the source that it was compiled from.

    `check` names the safety check that noticed, if one did: the knob `checks` has them.
    """

    message: str
    span: SourceSpan | None
    check: str | None = None

    def error(self) -> TesseraError:
        """The error, of the class that the interpreter's check raises."""
        kind, hint = _ERRORS[self.check]
        return kind(self.message, span=self.span, hint=hint or _HINTS.get(self.message))


_ERRORS: Mapping[str | None, tuple[type[TesseraError], str | None]] = {
    None: (CompileError, None),
    "bounds": (
        ShapeError,
        "a block may reach over the end, but starts inside: check the grid, the block size and the offset",
    ),
    "indices": (RangeError, "indices count from 0; clamp or mask them first"),
    "steps": (CompileError, None),
    "nan": (DtypeError, "mask or clamp the operands with tile.where before this op, or switch the check off"),
}


_HINTS = {
    "divides by zero": "check where the divisor comes from, or give another where it is 0: tile.maximum(n, 1)",
    "tile.range has a step below 1": "loops go upward: check where the step comes from, or write tile.maximum(step, 1)",
}
"""What to do about failures that no check names."""


class MapAxis(NamedTuple):
    """An axis of a tensor map, taken from an axis of the array: the whole of it, or one half of it split by `step`.

    whole: its size and stride; inner: `step` elements of its stride; outer: as many times `step` as cover its size, the
    last perhaps in part, that many strides apart.
    """

    axis: int
    part: str
    step: int

    def measure(self, sizes: Sequence[int], strides: Sequence[int]) -> tuple[int, int]:
        """Its size and stride, in elements, for an array of these."""
        size, stride = sizes[self.axis], strides[self.axis]
        if self.part == "whole":
            return size, stride
        return (self.step, stride) if self.part == "inner" else (-(-size // self.step), self.step * stride)


PARTS = ("whole", "inner", "outer")
SWIZZLES = (0, 32, 64, 128)
MAP_BYTES = 128
WORD = 8
REPORT_WORDS = 7
"""Words of the record in which a GPU's kernel says what went wrong: its status and details."""
PRINTS = 64
"""The byte of that record from which on the buffer of prints lies."""


@dataclass(frozen=True, slots=True)
class TensorMap:
    """A tensor map of one argument, at `offset` bytes of the params block. Axes and box begin with the innermost."""

    offset: int
    argument: int
    axes: tuple[MapAxis, ...]
    box: tuple[int, ...]
    swizzle: int


@dataclass(frozen=True, slots=True)
class DeviceLaunch:
    """The parameters of a launch on a GPU besides its arguments.

    threads: of a block. shared: bytes of dynamic shared memory. cluster: blocks to a cluster. persistent: blocks to a
    multiprocessor, 0 for one block to each program instance. counters: bytes of workspace that a kernel finds zeroed
    and leaves zeroed; its address goes into `counters_word`. report_word: where the address of the status record goes;
    -1 for kernels that report nothing. local: bytes of local memory that a thread is expected to need. follows: whether
    the kernel waits by itself for those in front of it, so that it may be started while they run.
    """

    threads: int
    shared: int
    cluster: int = 1
    persistent: int = 0
    maps: tuple[TensorMap, ...] = ()
    counters: int = 0
    counters_word: int = -1
    report_word: int = -1
    local: int = 0
    follows: bool = False

    def blocks(self, instances: int, multiprocessors: int) -> int:
        """How many blocks to launch for so many program instances: whole clusters, and none for none."""
        if self.persistent and instances:
            fitting = counted(min, instances, self.persistent * multiprocessors)
            return counted(max, fitting // self.cluster, 1) * self.cluster
        return -(-instances // self.cluster) * self.cluster

    def encoded(self) -> dict[str, Any]:
        """As JSON has it."""
        maps = [[one.offset, one.argument, one.axes, one.box, one.swizzle] for one in self.maps]
        return {
            "threads": self.threads,
            "shared": self.shared,
            "cluster": self.cluster,
            "persistent": self.persistent,
            "maps": maps,
            "counters": self.counters,
            "counters_word": self.counters_word,
            "report_word": self.report_word,
            "local": self.local,
            "follows": self.follows,
        }

    @staticmethod
    def decoded(found: Mapping[str, Any]) -> DeviceLaunch:
        """As `encoded` wrote it; KeyError, TypeError or ValueError where it did not."""
        maps = tuple(_decoded_map(*one) for one in found["maps"])
        numbers = ("counters", "counters_word", "report_word", "local")
        return DeviceLaunch(
            int(found["threads"]),
            int(found["shared"]),
            int(found["cluster"]),
            int(found["persistent"]),
            maps,
            *(int(found[name]) for name in numbers),
            follows=bool(found["follows"]),
        )


def _decoded_map(offset: Any, argument: Any, axes: Any, box: Any, swizzle: Any) -> TensorMap:
    found = tuple(MapAxis(int(axis), part, int(step)) for axis, part, step in axes)
    if swizzle not in SWIZZLES or any(axis.part not in PARTS for axis in found):
        raise ValueError(swizzle)
    return TensorMap(int(offset), int(argument), found, tuple(map(int, box)), int(swizzle))


@dataclass(frozen=True)
class Plan:
    """How to run one program. The last `fresh` arguments are arrays that each call makes anew: the results.

    `failures[status - 1]` is what a status means. `grid_word` and `words` belong to the layout of the args block.
    `ordered` says that the order in which program instances run shows in the last bits: they add floats to memory.
    `device` is there for programs of a GPU: `block_bytes` is the size of their params block, words and tensor maps.
    """

    name: str
    arguments: tuple[ArrayArgument | NumberArgument, ...]
    fresh: int
    grid: Shape
    grid_word: int
    words: int
    failures: tuple[Failure, ...]
    ordered: bool = False
    device: DeviceLaunch | None = None
    block_bytes: int = 0
    checks: tuple[tuple[Condition, Failure], ...] = ()
    """Expressions that must not be 0 for given sizes and strides, and their errors; checked before the program runs."""
    apart: tuple[tuple[int, int], ...] = ()
    """Pairs of inputs, by their indices, that must not overlap: the program writes one of them."""
    covers: tuple[Cover, ...] = ()
    """How far program instances reach into arrays, where that may be too short or too far."""
    prints: tuple[Print, ...] = ()
    """What the program prints: a launch has a buffer for records of it, and shows them when it is over."""
    prints_word: int = -1
    """Where the address of that buffer goes; on a GPU that of the status record, behind which it lies."""

    @cached_property
    def inputs(self) -> tuple[ArrayArgument | NumberArgument, ...]:
        return self.arguments[: len(self.arguments) - self.fresh]

    @cached_property
    def results(self) -> tuple[ArrayArgument, ...]:
        found = self.arguments[len(self.arguments) - self.fresh :]
        return tuple(one for one in found if isinstance(one, ArrayArgument))

    def sizes(self, shapes: Sequence[Sizes | None]) -> dict[str, int]:
        """The values of the symbols, given the shapes of the inputs, or of results too; None for numbers."""
        quick = self._symbols.quick(shapes)
        return self._unified(shapes) if quick is None else quick

    @cached_property
    def _symbols(self) -> Symbols:
        return Symbols(one.shape if isinstance(one, ArrayArgument) else None for one in self.arguments)

    def _unified(self, shapes: Sequence[Sizes | None]) -> dict[str, int]:
        """The same by solving equations, or the error that says which of them cannot hold."""
        known: dict[str, int] = {}
        others: list[tuple[Size, int, Origin]] = []
        for index, (argument, shape) in enumerate(zip(self.arguments, shapes, strict=False)):
            if not isinstance(argument, ArrayArgument) or shape is None:
                continue
            what = f"argument {index} of @{self.name}"
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

    def check(self, geometry: Sequence[Geometry]) -> None:
        """Raises what the first check that fails for these sizes and strides means."""
        for condition, failure in self.checks:
            try:
                holds = evaluate(condition, geometry)
            except ZeroDivisionError:  # an earlier check has said so
                continue
            if not holds:
                raise failure.error()

    def check_covers(self, sizes: Mapping[str, int], grid: Sequence[int]) -> None:
        """Raises where arrays that the program is to fill stay unwritten in part, or where it leaves some."""
        for cover in self.covers:
            cover.check(self.name, grid, sizes)

    def encoded(self) -> dict[str, Any]:
        """The plan as JSON has it; those of programs that print nothing do not mention it."""
        prints = {"prints": [_encoded_print(one) for one in self.prints], "prints_word": self.prints_word}
        return (prints if self.prints else {}) | {
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
            "device": None if self.device is None else self.device.encoded(),
            "block_bytes": self.block_bytes,
            "checks": [[condition, _encoded_failure(failure)] for condition, failure in self.checks],
            "covers": [_encoded_cover(one) for one in self.covers],
            "failures": [_encoded_failure(one) for one in self.failures],
            "apart": self.apart,
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
            tuple(map(_decoded_failure, found["failures"])),
            bool(found["ordered"]),
            None if found["device"] is None else DeviceLaunch.decoded(found["device"]),
            int(found["block_bytes"]),
            tuple((frozen(condition), _decoded_failure(failure)) for condition, failure in found["checks"]),
            tuple((int(first), int(second)) for first, second in found["apart"]),
            tuple(_decoded_cover(*one) for one in found["covers"]),
            tuple(_decoded_print(*one) for one in found.get("prints", ())),
            int(found.get("prints_word", -1)),
        )


def _evaluated(shape: Shape, sizes: Mapping[str, int]) -> Sizes:
    try:
        return evaluator(shape)(sizes)
    except KeyError:
        missing = sorted(frozenset[str]().union(*(dim(part).symbols for part in shape)) - sizes.keys())
        raise ShapeError(f"the size {', '.join(missing)} of a result is not known from the arguments") from None


def _shape(parts: Sequence[str]) -> Shape:
    return tuple(int(part) if part.isdecimal() else size(dim(part)) for part in parts)


def _encoded_failure(failure: Failure) -> list[Any]:
    return [failure.message, None if failure.span is None else _encoded_span(failure.span), failure.check]


def _decoded_failure(found: Sequence[Any]) -> Failure:
    message, span, check = found
    return Failure(message, _decoded_span(span), check)


def _encoded_cover(one: Cover) -> list[Any]:
    return [one.name, one.axis, str(one.reach), [str(part) for part in one.shape], one.inside]


def _decoded_cover(name: Any, axis: Any, reach: str, shape: Sequence[str], inside: Any) -> Cover:
    (end,) = _shape([reach])
    return Cover(str(name), int(axis), end, _shape(shape), bool(inside))


def _encoded_print(one: Print) -> list[object]:
    return [one.label, [[dtype.name, shape] for dtype, shape in one.values]]


def _decoded_print(label: str, values: Sequence[tuple[str, Sequence[int]]]) -> Print:
    return Print(label, tuple((BY_NAME[name], tuple(map(int, shape))) for name, shape in values))


def _encoded_span(span: SourceSpan) -> list[Any]:
    callers = [] if span.caller is None else [_encoded_span(span.caller)]
    return [span.file, span.line, span.column, span.end_line, span.end_column, *callers]


def _decoded_span(found: Sequence[Any] | None) -> SourceSpan | None:
    if found is None:
        return None
    return SourceSpan(*found[:5], *(_decoded_span(caller) for caller in found[5:]))
