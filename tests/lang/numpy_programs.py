"""Random programs over the public operators as Python source, and what NumPy computes for them in float64.

A program is drawn step by step from a seed. Each step is a line of source and its value by `bounded_values`, so that
the next step may look at shapes and numbers: what would leave a domain, overflow, or hang on a rounding is not taken.
Sizes may be 0 and 1; arguments are contiguous, transposed, strided, reversed or repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from bounded_values import UNITS, Array, Bounded, UnfitError, cast, whole

import tessera as ts

FLOATS, INTEGERS = ("f32", "f32", "f32", "f32", "f64", "f16", "bf16"), ("i64", "i64", "i32", "i8", "u8")
_SIZES = (1, 2, 2, 3, 3, 4, 5, 5, 7, 8, 9, 16, 17, 33)
_MOST_ELEMENTS = 20_000
_LIMITS = {
    "i64": (-(10**6), 10**6),
    "i32": (-(10**6), 10**6),
    "i16": (-32768, 32767),
    "i8": (-128, 127),
    "u8": (0, 255),
}


@dataclass(frozen=True)
class Line:
    """One statement: the names that it makes, its right side, and the names in it."""

    made: tuple[str, ...]
    source: str
    used: tuple[str, ...]


@dataclass(frozen=True)
class Program:
    """A function in source, its arguments, and what each of its values should be."""

    seed: int
    arguments: dict[str, ts.Tensor]
    lines: tuple[Line, ...]
    results: tuple[str, ...]
    values: dict[str, Bounded]

    @property
    def source(self) -> str:
        body = "\n".join(f"    {', '.join(line.made)} = {line.source}" for line in self.lines)
        return f"def program({', '.join(self.arguments)}):\n{body}\n    return {', '.join(self.results)},\n"

    def function(self) -> Callable[..., tuple[Any, ...]]:
        scope: dict[str, Any] = {"ts": ts, "np": np}
        exec(self.source, scope)
        return scope["program"]

    def of(self, results: Sequence[str]) -> Program:
        """The part of the program that some of its values need."""
        needed, lines = set(results), list[Line]()
        for line in reversed(self.lines):
            if needed & set(line.made):
                needed |= set(line.used)
                lines.insert(0, line)
        arguments = {name: value for name, value in self.arguments.items() if name in needed}
        return replace(self, arguments=arguments, lines=tuple(lines), results=tuple(results))

    def described(self) -> str:
        """The program as text, for the report of a failure."""
        kinds = [
            f"# {name}: {value.dtype} {value.shape} strides {value.strides}" for name, value in self.arguments.items()
        ]
        return "\n".join([f"# seed {self.seed}", *kinds, self.source])

    def check(self, found: Sequence[Any]) -> None:
        """Compares results with what they should be."""
        for name, got in zip(self.results, found, strict=True):
            want = self.values[name]
            assert str(got.dtype) == want.dtype, f"{name} is {got.dtype} and should be {want.dtype}"
            assert got.shape == want.shape, f"{name} has shape {got.shape} and should have {want.shape}"
            values = np.asarray(got.values(), np.float64)
            apart = np.abs(values - want.exact.astype(np.float64))
            if not (apart <= 4 * want.error).all():
                worst = np.unravel_index(np.argmax(np.nan_to_num(apart - 4 * want.error, nan=np.inf)), want.shape)
                said = f"{values[worst]!r} instead of {want.exact[worst]!r} ± {want.error[worst]:.2g}"
                raise AssertionError(f"{name} is wrong at {[int(one) for one in worst]}: {said}")


@dataclass
class Draft:
    """A program while it is drawn."""

    random: np.random.Generator
    arguments: dict[str, ts.Tensor] = field(default_factory=dict[str, ts.Tensor])
    lines: list[Line] = field(default_factory=list[Line])
    values: dict[str, Bounded] = field(default_factory=dict[str, Bounded])

    # Draws

    def chance(self, share: float) -> bool:
        return bool(self.random.random() < share)

    def whole(self, low: int, high: int) -> int:
        """From low to high, both included."""
        return int(self.random.integers(low, high + 1))

    def one_of(self, items: Sequence[Any]) -> Any:
        return items[self.whole(0, len(items) - 1)]

    def size(self) -> int:
        return 0 if self.chance(0.06) else self.one_of(_SIZES)

    def axis(self, x: Bounded, *, signed: bool = True) -> int:
        if not x.shape:
            raise UnfitError
        axis = self.whole(0, len(x.shape) - 1)
        return axis - len(x.shape) if signed and self.chance(0.4) else axis

    def axes(self, x: Bounded) -> int | tuple[int, ...] | None:
        """Some axes of a value, as reductions take them."""
        if not x.shape or self.chance(0.2):
            return None
        if self.chance(0.6):
            return self.axis(x)
        return tuple(int(one) for one in self.random.permutation(len(x.shape))[: self.whole(1, len(x.shape))])

    # Values

    def some(self, *kinds: str, ranks: Sequence[int] = range(9), least: int = 0) -> str:
        """The name of a value of one of these kinds (f, i, b) or types; late ones are likelier, new ones come too."""
        fitting = [
            name
            for name, value in self.values.items()
            if (value.dtype in kinds or _kind(value.dtype) in kinds)
            and len(value.shape) in ranks
            and min(value.shape, default=9) >= least
        ]
        if fitting and self.chance(0.85):
            return fitting[-1 - min(int(self.random.exponential(3)), len(fitting) - 1)]
        known = [rank for rank in ranks if rank <= 4]
        return self.new(self.one_of(kinds), tuple(max(least, self.size()) for _ in range(self.one_of(known))))

    def like(self, name: str, *kinds: str) -> str:
        """Something that broadcasts with a value: there already, or new."""
        shape = self.values[name].shape
        fitting = [
            other
            for other, value in self.values.items()
            if (value.dtype in kinds or _kind(value.dtype) in kinds) and broadcasts(shape, value.shape)
        ]
        if fitting and self.chance(0.7):
            return self.one_of(fitting)
        sizes = [1 if self.chance(0.2) else size for size in shape]
        return self.new(self.one_of(kinds), tuple(sizes[self.whole(0, len(sizes)) if self.chance(0.3) else 0 :]))

    def new(self, kind: str, shape: tuple[int, ...], low: float | None = None, high: float | None = None) -> str:
        """A new argument."""
        if np.prod(shape) > _MOST_ELEMENTS:
            raise UnfitError
        dtype = {"f": FLOATS, "i": INTEGERS, "b": ("bool",)}.get(kind, (kind,))
        name, chosen = f"a{len(self.arguments)}", self.one_of(dtype)
        array, repeated = self._laid(shape)
        given = ts.asarray(array(self._elements(chosen, low, high))).to(chosen)
        tensor = repeated(given)
        self.arguments[name] = tensor
        exact = tensor.values()
        wide = np.float64 if chosen in UNITS else np.bool_ if chosen == "bool" else np.int64
        self.values[name] = whole(exact.astype(wide), chosen)
        return name

    def _elements(self, dtype: str, low: float | None, high: float | None) -> Callable[[tuple[int, ...]], Array]:
        def draw(shape: tuple[int, ...]) -> Array:
            if dtype == "bool":
                return self.random.random(shape) < 0.5
            if dtype in UNITS:
                return self.random.uniform(-2 if low is None else low, 2 if high is None else high, shape)
            first = low if low is not None else 0 if dtype == "u8" else -6
            return self.random.integers(int(first), int(6 if high is None else high) + 1, shape)

        return draw

    def _laid(
        self, shape: tuple[int, ...]
    ) -> tuple[Callable[[Callable[[tuple[int, ...]], Array]], Array], Callable[[ts.Tensor], ts.Tensor]]:
        """How an argument lies in memory: the array that is drawn, and what makes the argument of it."""
        way = self.one_of(("plain", "plain", "plain", "transposed", "strided", "backwards", "repeated"))
        rank = len(shape)
        if way == "transposed" and rank > 1:
            order = [int(one) for one in self.random.permutation(rank)]
            back = [order.index(axis) for axis in range(rank)]
            return (lambda draw: draw(tuple(shape[axis] for axis in order))), lambda made: made.permute(*back)
        if way == "strided" and rank:
            cut = (..., slice(1, None, 2))
            return (lambda draw: draw((*shape[:-1], 2 * shape[-1] + 1))), lambda made: made[cut]
        if way == "backwards" and rank:
            return (lambda draw: draw(shape)), lambda made: made[::-1]
        if way == "repeated" and rank:
            axis = self.whole(0, rank - 1)
            less = tuple(1 if at == axis else size for at, size in enumerate(shape))
            return (lambda draw: draw(less)), lambda made: made.broadcast_to(shape)
        return (lambda draw: draw(shape)), lambda made: made

    # Steps

    def let(self, source: str, *made: Bounded) -> None:
        """Adds `source`, which gives these values; names of others stand in braces."""
        values = [_checked(one) for one in made]
        names = tuple(f"v{len(self.values) + at}" for at in range(len(values)))
        used = tuple(name for name in self.values if f"{{{name}}}" in source)
        text = source
        for name in used:
            text = text.replace(f"{{{name}}}", name)
        self.lines.append(Line(names, text, used))
        self.values.update(zip(names, values, strict=True))

    def both(self, x: str, y: str) -> tuple[Bounded, Bounded]:
        """Two values in the type that they meet in."""
        a, b = self.values[x], self.values[y]
        if a.dtype == b.dtype:
            return a, b
        if a.dtype in UNITS and b.dtype in UNITS:
            common = "f64" if "f64" in (a.dtype, b.dtype) else "f32"
            return cast(a, common), cast(b, common)
        if "bool" in (a.dtype, b.dtype) or a.dtype in UNITS or b.dtype in UNITS:
            raise UnfitError
        common = str(ts.result_type(getattr(ts, a.dtype), getattr(ts, b.dtype)))
        return replace(a, dtype=common), replace(b, dtype=common)


def _kind(dtype: str) -> str:
    return "f" if dtype in UNITS else "b" if dtype == "bool" else "i"


def broadcasts(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether two shapes broadcast."""
    return all(x == y or 1 in (x, y) for x, y in zip(reversed(a), reversed(b), strict=False))


def _checked(value: Bounded) -> Bounded:
    """A value that later steps may use; refused where it is large, inexact or does not fit its type."""
    exact, error = np.asarray(value.exact), np.asarray(value.error)
    if exact.size > _MOST_ELEMENTS or not np.isfinite(exact).all():
        raise UnfitError
    largest = float(np.max(np.abs(exact), initial=0))
    if value.dtype in UNITS:
        if largest > (500 if value.dtype == "f16" else 10_000):
            raise UnfitError
        if error.size and float(np.max(error)) > 0.02 * max(largest, 0.1):
            raise UnfitError
        return Bounded(exact.astype(np.float64), error, value.dtype)
    if value.dtype == "bool":
        return whole(exact.astype(np.bool_), "bool")
    low, high = _LIMITS[value.dtype]
    if exact.size and (exact.min() < low or exact.max() > high):
        raise UnfitError
    return whole(exact.astype(np.int64), value.dtype)


def draw_program(seed: int, least: int = 2, most: int = 9) -> Program:
    """The program of a seed."""
    from numpy_rules import RULES

    draft = Draft(np.random.default_rng(seed))
    with np.errstate(all="ignore"):
        draft.new("f", tuple(draft.size() for _ in range(draft.whole(0, 2))))
        wanted = draft.whole(least, most)
        for _ in range(20 * wanted):
            if len(draft.lines) >= wanted:
                break
            arguments, values = dict(draft.arguments), dict(draft.values)
            try:
                draft.one_of(RULES)(draft)
            except UnfitError:
                draft.arguments, draft.values = arguments, values
    made = [name for line in draft.lines for name in line.made]
    used = {name for line in draft.lines for name in line.used}
    # What nothing else uses, some of it; and now and then something that is used, too.
    ends = [name for name in made[:-1] if name not in used or draft.chance(0.1)]
    results = {made[-1], *(str(one) for one in draft.random.permutation(ends)[: draft.whole(0, 3)])}
    whole_program = Program(seed, draft.arguments, tuple(draft.lines), tuple(sorted(results)), draft.values)
    return whole_program.of(whole_program.results)
