"""Arrays with odd sizes, strides and values, and what it means that machine code and the interpreter agree on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

import tessera as ts
from tessera import DType, bf16, f16, f32, f64, knobs
from tessera.targets.cpu.features import LEVELS, has

Array = np.ndarray[Any, np.dtype[Any]]

MACHINES = [level for level in LEVELS if has(level)]
EDGES = [1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 300]
PRIMES = [n for n in range(2, 300) if all(n % k for k in range(2, n))]
SIZES = st.one_of(st.sampled_from(EDGES), st.sampled_from(PRIMES), st.integers(1, 300))


def _with_gaps(values: Array, *slices: slice) -> Array:
    """The same values in memory that is three times as long each way, and full of 77 elsewhere."""
    memory = np.full([3 * size + 1 for size in values.shape], 77, values.dtype)
    view = memory[slices][tuple(slice(size) for size in values.shape)]
    view[...] = values
    return view


def _every(values: Array, step: int) -> Array:
    return _with_gaps(values, *[slice(1 if step > 0 else -2, None, step)] * values.ndim)


def _unaligned(values: Array) -> Array:
    """One byte further than its elements would like to be; that byte is 77."""
    view = np.ndarray(values.shape, values.dtype, np.full(values.nbytes + 1, 77, np.uint8).data, offset=1)
    view[...] = values
    return view


# The same values, elsewhere in memory.
LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "plain": lambda a: a.copy(),
    "late": lambda a: _every(a, 1),
    "sparse": lambda a: _every(a, 2),
    "sparse rows": lambda a: _with_gaps(a, slice(None, None, 3)),
    "transposed": lambda a: a.T.copy().T,
    "backwards": lambda a: _every(a, -1),
    "sparse backwards": lambda a: _every(a, -2),
    "unaligned": _unaligned,
}
# Other values, too: along one axis there is one element of memory, so nothing can be written there.
REPEATED: dict[str, Callable[[Array], Array]] = {
    "one row": lambda a: np.broadcast_to(a[..., :1, :] if a.ndim > 1 else a[:1], a.shape),
    "one column": lambda a: np.broadcast_to(a[..., :1], a.shape),
}

# Ordinary numbers are multiples of 1/8 up to 1/2: sums of products of two are exact in f32, and fit f16.
ORDINARY = ("whole", "normal")
SPECIAL = ("huge", "tiny", "infinite", "nan")


def _factor(kind: str, dtype: DType) -> float:
    if kind == "huge":
        return 2.0**11 if dtype is f16 else 2.0**98
    return {f16: 2.0**-20, f64: 2.0**-1060}.get(dtype, 2.0**-130)  # subnormal numbers


@dataclass
class Odd:
    """Makes the arrays of one call, the same for the same fields: layouts by rotation, and one array of special values.

    With `terms`, arrays that are summed are made positive: what a kernel gives then is what its errors are relative to.
    """

    dtype: DType
    ordinary: str
    special: str
    which: int
    layouts: tuple[str, ...]
    seed: int
    terms: bool = False
    made: int = field(default=0, init=False)
    targets: list[tuple[Array, Array]] = field(default_factory=list[tuple[Array, Array]], init=False)

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)

    def _layout(self) -> str:
        self.made += 1
        return self.layouts[self.made % len(self.layouts)]

    def __call__(self, *shape: int, summed: bool = False, exact: bool = False, modest: bool = False) -> Array:
        """Numbers. `summed`: see `terms`. `exact`: sums of them are exact. `modest`: none is huge or infinite."""
        kind = self.special if self.made == self.which else self.ordinary
        if (exact and kind == "normal") or (modest and kind in ("huge", "infinite")):
            kind = "whole"
        values = self.random.standard_normal(shape) if kind == "normal" else self.random.integers(-4, 5, shape) / 8
        if kind in ("huge", "tiny"):
            values *= _factor(kind, self.dtype)
        if kind in ("infinite", "nan") and values.size:
            indices = self.random.integers(0, values.size, 1 + values.size // 300)
            found = [np.nan] if kind == "nan" else [-np.inf, np.inf]
            values.reshape(-1)[indices] = self.random.choice(found, len(indices))
        if self.terms and summed:
            values = np.where(np.isfinite(values), np.abs(values), 0)
        return {**LAYOUTS, **REPEATED}[self._layout()](values.astype(self.dtype.storage))

    def scores(self, *shape: int, modest: bool = False) -> Array:
        """Numbers whose products are scores: exact ones, where the scores may be so large that roundings show."""
        return self(*shape, exact=self.special == "huge" or self.repeats, modest=modest)

    @property
    def repeats(self) -> bool:
        """Whether there may be arrays whose rows or columns are all the same."""
        return not REPEATED.keys().isdisjoint(self.layouts)

    def whole(self, low: int, high: int, *shape: int, dtype: DType) -> Array:
        values = self.random.integers(low, high, shape)
        return {**LAYOUTS, **REPEATED}[self._layout()](values.astype(dtype.storage))

    def bias(self, *shape: int) -> Array:
        """Numbers and −∞; some rows have nothing else, and some columns."""
        values = self.random.integers(-4, 5, shape) / 8
        rows, cols = (np.expand_dims(self.random.random(shape[axis]) < 0.2, 1 - axis) for axis in (0, 1))
        values[rows | cols | (self.random.random(shape) < 0.2)] = -np.inf
        return {**LAYOUTS, **REPEATED}[self._layout()](values.astype(self.dtype.storage))

    def target(self, *shape: int, dtype: DType | None = None) -> Array:
        """An array to be filled."""
        layout = LAYOUTS.get(self._layout(), LAYOUTS["plain"])
        view = layout(np.zeros(shape, (dtype or self.dtype).storage))
        self.targets.append((view, view if view.base is None else view.base))
        return view

    def again(self) -> Odd:
        """One that makes the same arrays from the start."""
        return replace(self)

    def positive(self) -> Odd:
        return replace(self, terms=True)

    def expect_untouched_gaps(self) -> None:
        for view, memory in self.targets:
            if memory.dtype == view.dtype and memory.size > view.size:
                kept = view.copy()
                view[...] = 77
                assert (memory == 77).all(), "a kernel wrote between the elements of an array"
                view[...] = kept


LAYOUT_LISTS = st.lists(st.sampled_from([*LAYOUTS, *REPEATED]), min_size=1, max_size=4).map(tuple)


def odd(dtypes: st.SearchStrategy[DType]) -> st.SearchStrategy[Odd]:
    return st.builds(
        Odd,
        dtypes,
        st.sampled_from(ORDINARY),
        st.sampled_from([*ORDINARY, *SPECIAL]),
        st.integers(0, 2),
        LAYOUT_LISTS,
        st.integers(0, 10**6),
    )


Call = Callable[[Odd], Any]


def interpreted(call: Call, given: Odd) -> Array:
    with knobs.interpret.using(True), np.errstate(all="ignore"):
        return as_array(call(given.again()))


def compiled(call: Call, given: Odd, level: str) -> Array:
    arrays = given.again()
    with knobs.backend.using("cpu"), knobs.cpu_level.using(level):
        found = as_array(call(arrays))
    arrays.expect_untouched_gaps()
    return found


def as_array(found: Any) -> Array:
    return np.asarray(found.numpy() if isinstance(found, ts.Tensor) else found)


# Relative to the largest terms that are summed in a row of the result: a few roundings, of sums in another order.
_TOLERANCES = {f64: 8e-15, f32: 4e-6, f16: 2e-3, bf16: 1.6e-2}
# What subnormal results may differ by: their spacing, and that of up to 300 terms of a sum in f32 (f64).
_SPACINGS = {f64: 302 * 2.0**-1074, f32: 302 * 2.0**-149, f16: 2.0**-24 + 300 * 2.0**-149, bf16: 2.0**-132}
# Kernels with products take subnormal numbers of f32 (f64) for 0; of up to 300 of them comes no more than this.
_LOSSES = {f64: 2.0**-1011, f32: 2.0**-115, f16: 2.0**-115, bf16: 2.0**-115}


def bounds(
    work: DType, terms: Array, expected: Array, *, beyond: float = 0.0, products: bool = False, overflow: bool = False
) -> Array:
    """What each element of a result may be off by, if numbers were rounded to a type on the way.

    Infinite terms say nothing, unless they come of `overflow`: then they are no smaller than the largest number.
    """
    terms, expected = (np.abs(found.astype(np.float64)) for found in (terms, expected))
    terms = np.where(np.isinf(terms), float(work.max_value) if overflow else 0.0, terms)
    largest = np.fmax(terms, np.where(np.isinf(expected), 0.0, expected))
    largest = np.fmax.reduce(largest, -1, keepdims=True, initial=0.0)
    smallest = _SPACINGS[work] + (_LOSSES[work] if products else 0.0)
    return np.broadcast_to((_TOLERANCES[work] + beyond) * largest + smallest, expected.shape)


def expect_equal(found: Array, expected: Array) -> None:
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    if found.dtype.kind not in "iub":
        found, expected = found.astype(np.float64), expected.astype(np.float64)
    assert np.array_equal(found, expected, equal_nan=found.dtype.kind == "f")


def expect_close(found: Array, expected: Array, allowed: Array, *, nans_may_be_missing: bool = False) -> None:
    """Infinities and NaN where they belong, the rest within bounds."""
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    found, expected = found.astype(np.float64), expected.astype(np.float64)
    lost = np.isnan(expected)
    assert not (np.isnan(found) & ~lost).any(), "machine code gives NaN where the interpreter does not"
    if not nans_may_be_missing:
        assert np.isnan(found[lost]).all(), "the interpreter gives NaN where machine code does not"
    endless = np.isinf(expected) | (np.isinf(found) & ~lost)
    assert np.array_equal(found[endless], expected[endless]), "infinities differ"
    rest = ~(lost | endless)
    off = np.abs(found[rest] - expected[rest])
    beyond = off > allowed[rest]
    assert not beyond.any(), (
        f"{beyond.sum()} of {beyond.size} elements are off, the first by {off[beyond][0]:.3g},"
        f" where {allowed[rest][beyond][0]:.3g} is allowed: {found[rest][beyond][0]} for {expected[rest][beyond][0]}"
    )
