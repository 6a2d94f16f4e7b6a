"""Which sizes are numbers and which are symbols: what a function has seen, and the programs that were made for it.

Sizes that annotations name are symbols. Others are numbers at first; an axis that comes with another size becomes a
symbol, unless the size is 0 or 1, which broadcasting treats otherwise. Axes whose sizes were always equal share one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tessera.cached_property import cached_property
from tessera.errors import SourceSpan
from tessera.lang.calls.parameters import Call, Parameters
from tessera.lang.calls.watching import Check
from tessera.lang.tracing.functions import ArgumentType, TracedFunction
from tessera.lang.tracing.shape_rules import is_automatic
from tessera.runtime.device.device import Device
from tessera.runtime.tensor.tensor import Tensor
from tessera.shapes.annotations import TensorType
from tessera.shapes.bounds import Interval
from tessera.shapes.environment import ShapeEnvironment
from tessera.shapes.expr import Dim, Size, dim, size

if TYPE_CHECKING:
    from tessera.programs import Program

Axis = tuple[int, int]
"""Which leaf, and which of its axes."""

_SPECIAL = (0, 1)


@dataclass
class ObservedSizes:
    """The sizes that one family of calls came with, as far as they were looked at."""

    shapes: list[tuple[tuple[int, ...], ...]] = field(default_factory=list[tuple[tuple[int, ...], ...]])
    replaced: dict[str, str | None] = field(default_factory=dict[str, "str | None"])
    """Symbols that are needed as others, or as numbers where it is None."""
    narrowed: str | None = None
    """Which of them are numbers, and why, where the function refuses symbols; see `narrowing`."""
    is_open: bool = False
    """Whether all sizes but widths, those of last axes, are symbols from the start."""

    def add(self, values: Sequence[Tensor]) -> None:
        self.add_shapes(tuple(value.shape for value in values))

    def add_shapes(self, shapes: tuple[tuple[int, ...], ...]) -> None:
        self.shapes.append(shapes)
        del self.shapes[:-_MOST_SEEN]

    def changing(self) -> set[Axis]:
        """The axes that came with different sizes, 0 and 1 not counted; of an open family, those that may yet."""
        found: dict[Axis, int] = {}
        changed: set[Axis] = set()
        for shapes in self.shapes:
            for index, shape in enumerate(shapes):
                for axis, count in enumerate(shape):
                    if count not in _SPECIAL and found.setdefault((index, axis), count) != count:
                        changed.add((index, axis))
        if self.is_open and self.shapes:
            last = enumerate(self.shapes[-1])
            changed |= {(index, axis) for index, shape in last for axis in range(len(shape) - 1)}
        return changed

    def always_equal(self, first: Axis, second: Axis) -> bool:
        return all(shapes[first[0]][first[1]] == shapes[second[0]][second[1]] for shapes in self.shapes)


_MOST_SEEN = 64


@dataclass(frozen=True)
class Pattern:
    """The types to trace for, and what their symbols are in the call at hand."""

    types: tuple[ArgumentType, ...]
    numbers: Mapping[str, int]
    intervals: Mapping[str, Interval]


def pattern_of(call: Call, parameters: Parameters, seen: ObservedSizes) -> Pattern:
    """The types that a call is to be traced for."""
    annotated, environment = annotated_types(call, parameters)
    changing = seen.changing()
    symbols: dict[Axis, str] = {}
    types: list[ArgumentType] = []
    for index, (leaf, value) in enumerate(zip(call.leaves, call.values, strict=True)):
        expected = annotated[index]
        sizes: list[Size] = []
        lead = value.ndim if expected is None else value.ndim - len(expected.dims)
        for axis, count in enumerate(value.shape):
            if expected is not None and axis >= lead:
                sizes.append(_annotated_size(expected.dims[axis - lead], environment))
            elif (index, axis) in changing and count not in _SPECIAL:
                sizes.append(_automatic((index, axis), symbols, seen))
            else:
                sizes.append(count)
        dtype = value.dtype
        if expected is not None and expected.dtype is not None:
            dtype = expected.dtype
        span = parameters.annotations.span(leaf.name.split("[")[0]) if expected is not None else None
        types.append(ArgumentType(leaf.name, tuple(sizes), dtype, leaf.number is not None, span))
    types = _with_replaced(types, _numbers(types, call.values, environment), seen)
    numbers = _numbers(types, call.values, environment)
    intervals: dict[str, Interval] = {symbol: (2, None) for symbol in numbers if is_automatic(symbol)}
    return Pattern(tuple(types), numbers, intervals)


def annotated_types(call: Call, parameters: Parameters) -> tuple[list[TensorType | None], ShapeEnvironment]:
    """The annotated type of each leaf; arguments that do not fit are an error."""
    from tessera.lang.calls.annotated import leaves_of

    return leaves_of(call, parameters)


def _annotated_size(written: Size, environment: ShapeEnvironment) -> Size:
    """A size as annotated, if its symbols can be told from arguments; else one symbol for the whole of it."""
    if isinstance(written, int) or str(written).isidentifier() or written.symbols <= environment.sizes.keys():
        return written
    return dim("".join(letter if letter.isalnum() else "_" for letter in str(written)))


def _automatic(axis: Axis, symbols: dict[Axis, str], seen: ObservedSizes) -> Size:
    name = next((known for other, known in symbols.items() if seen.always_equal(axis, other)), None)
    if name is None:
        name = f"_{axis[0]}_{axis[1]}"
    symbols[axis] = name
    return dim(name)


def _with_replaced(
    types: Sequence[ArgumentType], numbers: Mapping[str, int], seen: ObservedSizes
) -> list[ArgumentType]:
    """Types with numbers, or other symbols, for those that the function needs so."""
    values: dict[str, Size] = {}
    for symbol in numbers:
        found = _replacement(symbol, numbers, seen.replaced)
        if found != symbol:
            values[symbol] = numbers[symbol] if found is None else dim(found)
    if not values:
        return list(types)
    return [replace(one, sizes=tuple(size(dim(item).substitute(values)) for item in one.sizes)) for one in types]


def _replacement(symbol: str, numbers: Mapping[str, int], replaced: Mapping[str, str | None]) -> str | None:
    """The replacement of a symbol: another with the same number, or None for the number, over several steps."""
    passed: list[str] = []
    while symbol in replaced and symbol not in passed:
        passed.append(symbol)
        other = replaced[symbol]
        if other is None:
            return None
        if numbers.get(other) != numbers[symbol]:
            return symbol
        symbol = other
    return min(passed) if symbol in passed else symbol  # of those that stand for each other, the same for all


def _numbers(types: Sequence[ArgumentType], values: Sequence[Tensor], environment: ShapeEnvironment) -> dict[str, int]:
    numbers = dict(environment.sizes)
    for one, value in zip(types, values, strict=True):
        for expected, actual in zip(one.sizes, value.shape, strict=True):
            if isinstance(expected, Dim) and str(expected).isidentifier():
                numbers[str(expected)] = actual
    return numbers


def sizes_for(
    traced: TracedFunction, values: Sequence[Tensor], shapes: Sequence[tuple[int, ...]] | None = None
) -> dict[str, int] | None:
    """The sizes of the symbols of a traced function for these arguments; None where it does not serve them.

    `shapes` are theirs, where the caller knows them.
    """
    sizes = traced.symbols.quick([value.shape for value in values] if shapes is None else shapes)
    if sizes is None and (sizes := _matched_sizes(traced, values)) is None:
        return None
    for symbol, (low, _) in traced.least.items():
        if low and sizes.get(symbol, low) < low:
            return None
    return sizes if all(guard.holds(sizes) for guard in traced.guards) else None


def _matched_sizes(traced: TracedFunction, values: Sequence[Tensor]) -> dict[str, int] | None:
    """The same before guards, where a symbol may be no size by itself."""
    sizes: dict[str, int] = {}
    rest: list[tuple[Dim, int]] = []
    for one, value in zip(traced.types, values, strict=True):
        for expected, actual in zip(one.sizes, value.shape, strict=True):
            if isinstance(expected, int):
                if expected != actual:
                    return None
            elif (name := str(expected)).isidentifier():
                if sizes.setdefault(name, actual) != actual:
                    return None
            else:
                rest.append((expected, actual))
    return _solved(sizes, rest) if rest else sizes


def _solved(sizes: dict[str, int], rest: Sequence[tuple[Dim, int]]) -> Any:
    from tessera.errors import ShapeError
    from tessera.shapes.environment import Origin

    environment = ShapeEnvironment()
    origin = Origin("arguments")
    try:
        for name, number in sizes.items():
            environment.bind(name, number, origin)
        for expected, actual in rest:
            environment.unify(expected, actual, origin)
    except ShapeError:
        return None
    return environment.sizes


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a function was compiled once more."""

    text: str
    span: SourceSpan | None = None

    def __str__(self) -> str:
        return self.text if self.span is None else f"{self.text} ({self.span})"


@dataclass(eq=False)
class Variant:
    """A traced and compiled function, and why it was made."""

    traced: TracedFunction
    program: Program
    reason: Reason
    unchanged: Check | None
    unwatched: Mapping[str, str]
    """Values from outside that are not watched: names, and the kinds of values."""
    fallback: str | None = None
    """Why the interpreter runs it, where that was not asked for."""
    found: bool = False
    """Whether another process made it."""
    unkept: str | None = None
    """Why other processes will not find it."""

    @cached_property
    def has_same_symbols(self) -> bool:
        """Whether its program's symbols are those of its own arguments."""
        whole, mine = self.program.symbols, self.traced.symbols
        return whole.positions == mine.positions and whole.shapes[: len(mine.shapes)] == mine.shapes


@dataclass(eq=False)
class Family:
    """Calls that differ in sizes alone: what they came with, and the variants that serve them."""

    device: Device
    seen: ObservedSizes = field(default_factory=ObservedSizes)
    variants: list[Variant] = field(default_factory=list[Variant])
