"""Random programs over operators, that run traced, eagerly and by the interpreter alike.

Values are floats, which stay small and are compared within a tolerance, or integers, which are exact: only these decide
where things go (compares, sorting, indices). A program is a list of steps over numbered values, so that hypothesis can
shrink it, and its sizes come from its arguments, so that it can be traced with symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

import tessera as ts

Shape = tuple[int, ...]
FLOAT, INT = "float", "int"


@dataclass(frozen=True)
class Step:
    """One call: which operator, on which values, with what else."""

    name: str
    operands: tuple[int, ...]
    options: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Program:
    """Arguments by shape and kind, and the steps that follow; the last few values are its results."""

    arguments: tuple[tuple[str, Shape], ...]
    steps: tuple[Step, ...]
    results: int
    narrow: bool
    """Whether it rounds to 16 bits on the way."""

    def __call__(self, *arguments: Any) -> list[Any]:
        values = list(arguments)
        for step in self.steps:
            run: Any = RULES[step.name].run
            values.append(run([values[at] for at in step.operands], *step.options))
        return values[-self.results :]

    def draw(self, seed: int, first: int | None = None) -> list[ts.Tensor]:
        """Arguments; those with more than one axis have `first` instead of their first size."""
        generator = np.random.default_rng(seed)
        found: list[ts.Tensor] = []
        for kind, shape in self.arguments:
            sizes = (first, *shape[1:]) if first is not None else shape
            if kind == INT:
                found.append(ts.asarray(generator.integers(-5, 6, sizes).astype(np.int32)))
            else:
                found.append(ts.asarray(generator.uniform(-2, 2, sizes).astype(np.float32)))
        return found


Run = Callable[[Any], Any] | Callable[[Any, Any], Any] | Callable[[Any, Any, Any], Any]


@dataclass
class Rule:
    """An operator in programs: what kinds it takes and gives, how options are drawn, and what it does."""

    takes: tuple[str, ...]
    gives: str
    run: Run
    choose: Callable[[st.DrawFn, Sequence[Shape]], tuple[tuple[Any, ...], Shape] | None] = field(
        default=lambda _, shapes: ((), shapes[0])
    )


def _same(_: st.DrawFn, shapes: Sequence[Shape]) -> tuple[tuple[Any, ...], Shape] | None:
    """Shapes of one rank, so that first axes stand beside first axes, with sizes that are equal or 1."""
    if len({len(shape) for shape in shapes}) > 1:
        return None
    try:
        return (), np.broadcast_shapes(*shapes)
    except ValueError:
        return None


def _axis(keep: bool) -> Callable[[st.DrawFn, Sequence[Shape]], tuple[tuple[Any, ...], Shape] | None]:
    def choose(draw: st.DrawFn, shapes: Sequence[Shape]) -> tuple[tuple[Any, ...], Shape] | None:
        (shape,) = shapes
        if len(shape) < 2:
            return None
        axis = draw(st.integers(1, len(shape) - 1))
        rest = tuple(1 if at == axis else size for at, size in enumerate(shape))
        return (axis,), rest if keep else shape

    return choose


def _product(_: st.DrawFn, shapes: Sequence[Shape]) -> tuple[tuple[Any, ...], Shape] | None:
    a, b = shapes
    if len(a) != 3 or len(b) != 3 or a[-1] != b[-1]:
        return None
    return (), (*a[:-1], b[-2])


def _transposed(draw: st.DrawFn, shapes: Sequence[Shape]) -> tuple[tuple[Any, ...], Shape] | None:
    (shape,) = shapes
    order = (0, *draw(st.permutations(range(1, len(shape)))))
    return (order,), tuple(shape[at] for at in order)


def _merged(_: st.DrawFn, shapes: Sequence[Shape]) -> tuple[tuple[Any, ...], Shape] | None:
    (shape,) = shapes
    return ((), (*shape[:-2], shape[-2] * shape[-1])) if len(shape) == 3 else None


def _split(_: st.DrawFn, shapes: Sequence[Shape]) -> tuple[tuple[Any, ...], Shape] | None:
    (shape,) = shapes
    return ((), (*shape[:-1], shape[-1] // 2, 2)) if len(shape) == 2 and shape[-1] % 2 == 0 else None


def _cut(draw: st.DrawFn, shapes: Sequence[Shape]) -> tuple[tuple[Any, ...], Shape] | None:
    (shape,) = shapes
    if len(shape) < 2 or shape[-1] < 2:
        return None
    start = draw(st.integers(0, shape[-1] - 1))
    step = draw(st.sampled_from((1, 2, -1)))
    taken = len(range(shape[-1])[start::step])
    return (start, step), (*shape[:-1], taken)


def _joined(_: st.DrawFn, shapes: Sequence[Shape]) -> tuple[tuple[Any, ...], Shape] | None:
    a, b = shapes
    if len(a) < 2 or len(a) != len(b) or a[:-1] != b[:-1] or a[-1] + b[-1] > 24:
        return None
    return (), (*a[:-1], a[-1] + b[-1])


def _taken_at(draw: st.DrawFn, shapes: Sequence[Shape]) -> tuple[tuple[Any, ...], Shape] | None:
    (shape,) = shapes
    if len(shape) < 2:
        return None
    indices = tuple(draw(st.lists(st.integers(0, shape[-1] - 1), min_size=1, max_size=6)))
    return (indices,), (*shape[:-1], len(indices))


def _held(x: Any) -> Any:
    """Within ±4, so that no step leaves the range where errors are small."""
    return ts.clip(x, -4.0, 4.0)


def _gathered(xs: Sequence[Any], indices: tuple[int, ...]) -> Any:
    return ts.take(xs[0], np.asarray(indices), axis=-1)


RULES: dict[str, Rule] = {
    "add": Rule((FLOAT, FLOAT), FLOAT, lambda xs: _held(xs[0] + xs[1]), _same),
    "mul": Rule((FLOAT, FLOAT), FLOAT, lambda xs: _held(xs[0] * xs[1]), _same),
    "sub": Rule((FLOAT, FLOAT), FLOAT, lambda xs: _held(xs[0] - xs[1]), _same),
    "max": Rule((FLOAT, FLOAT), FLOAT, lambda xs: ts.maximum(xs[0], xs[1]), _same),
    "tanh": Rule((FLOAT,), FLOAT, lambda xs: ts.tanh(xs[0])),
    "sigmoid": Rule((FLOAT,), FLOAT, lambda xs: ts.sigmoid(xs[0])),
    "gelu": Rule((FLOAT,), FLOAT, lambda xs: ts.gelu(xs[0])),
    "exp": Rule((FLOAT,), FLOAT, lambda xs: ts.exp(-ts.abs(xs[0]))),
    "root": Rule((FLOAT,), FLOAT, lambda xs: ts.sqrt(ts.abs(xs[0]) + 0.5)),
    "scale": Rule((FLOAT,), FLOAT, lambda xs: xs[0] * 0.75 - 0.25),
    "softmax": Rule((FLOAT,), FLOAT, lambda xs, axis: ts.softmax_safe(xs[0], axis=axis), _axis(keep=False)),
    "layernorm": Rule((FLOAT,), FLOAT, lambda xs: ts.layernorm_safe(xs[0], eps=0.1)),
    "rmsnorm": Rule((FLOAT,), FLOAT, lambda xs: ts.rmsnorm_safe(xs[0], eps=0.1)),
    "mean": Rule((FLOAT,), FLOAT, lambda xs, axis: ts.mean(xs[0], axis=axis, keepdims=True), _axis(keep=True)),
    "most": Rule((FLOAT,), FLOAT, lambda xs, axis: ts.max(xs[0], axis=axis, keepdims=True), _axis(keep=True)),
    "product": Rule((FLOAT, FLOAT), FLOAT, lambda xs: _held(ts.matmul(xs[0], ts.matrix_transpose(xs[1]))), _product),
    "transpose": Rule((FLOAT,), FLOAT, lambda xs, order: ts.permute_dims(xs[0], order), _transposed),
    "merge": Rule(
        (FLOAT,), FLOAT, lambda xs: ts.reshape(xs[0], (*xs[0].shape[:-2], xs[0].shape[-2] * xs[0].shape[-1])), _merged
    ),
    "split": Rule((FLOAT,), FLOAT, lambda xs: ts.reshape(xs[0], (*xs[0].shape[:-1], xs[0].shape[-1] // 2, 2)), _split),
    "cut": Rule((FLOAT,), FLOAT, lambda xs, start, step: xs[0][..., start::step], _cut),
    "join": Rule((FLOAT, FLOAT), FLOAT, lambda xs: ts.concat([xs[0], xs[1]], axis=-1), _joined),
    "take": Rule((FLOAT,), FLOAT, _gathered, _taken_at),
    "round": Rule((FLOAT,), FLOAT, lambda xs: ts.astype(ts.astype(xs[0], ts.bf16), ts.f32)),
    "choose": Rule((INT, FLOAT, FLOAT), FLOAT, lambda xs: ts.where(xs[0] > 0, xs[1], xs[2]), _same),
    "float": Rule((INT,), FLOAT, lambda xs: _held(ts.astype(xs[0], ts.f32) * 0.5)),
    "int_add": Rule((INT, INT), INT, lambda xs: xs[0] + xs[1], _same),
    "int_mul": Rule((INT, INT), INT, lambda xs: xs[0] * xs[1] % 17, _same),
    "int_divide": Rule((INT, INT), INT, lambda xs: xs[0] // (ts.abs(xs[1]) + 1), _same),
    "int_bits": Rule((INT, INT), INT, lambda xs: (xs[0] & xs[1]) ^ (xs[0] >> 1), _same),
    "int_less": Rule((INT, INT), INT, lambda xs: ts.astype(xs[0] < xs[1], ts.i32), _same),
    "int_sum": Rule(
        (INT,), INT, lambda xs, axis: ts.astype(ts.sum(xs[0], axis=axis, keepdims=True), ts.i32) % 31, _axis(keep=True)
    ),
    "int_index": Rule(
        (INT,), INT, lambda xs, axis: ts.astype(ts.argmax(xs[0], axis=axis, keepdims=True), ts.i32), _axis(keep=True)
    ),
    "int_running": Rule(
        (INT,), INT, lambda xs, axis: ts.astype(ts.cumulative_sum(xs[0], axis=axis), ts.i32) % 31, _axis(keep=False)
    ),
    "int_sort": Rule((INT,), INT, lambda xs, axis: ts.sort(xs[0], axis=axis), _axis(keep=False)),
}


@st.composite
def programs(draw: st.DrawFn, *, least: int = 4, most: int = 14) -> Program:
    """A program of some steps; steps that fit no values at hand are left out."""
    first = draw(st.sampled_from((2, 3, 4, 7)))
    sizes = st.sampled_from((1, 2, 3, 4, 6, 8))
    arguments = [(FLOAT, (first, *draw(st.tuples(sizes, sizes))))]
    arguments += [(FLOAT, arguments[0][1]), (INT, arguments[0][1]), (FLOAT, (first, draw(sizes)))]
    values: list[tuple[str, Shape]] = list(arguments)
    steps: list[Step] = []
    for _ in range(draw(st.integers(least, most))):
        name = draw(st.sampled_from(list(RULES)))
        rule = RULES[name]
        operands: list[int] = []
        for kind in rule.takes:
            fitting = [at for at, (own, _) in enumerate(values) if own == kind]
            # Late values are likelier, so that programs are deep.
            operands.append(fitting[-1 - min(draw(st.integers(0, len(fitting) - 1)), draw(st.integers(0, 3)))])
        found = rule.choose(draw, [values[at][1] for at in operands])
        if found is None or np.prod(found[1]) > 4096:
            continue
        steps.append(Step(name, tuple(operands), found[0]))
        values.append((rule.gives, found[1]))
    if not steps:
        steps.append(Step("tanh", (0,)))
        values.append(values[0])
    return Program(
        tuple(arguments), tuple(steps), min(3, len(steps)), any(step.name in ("round", "choose") for step in steps)
    )


def agree(found: Sequence[Any], expected: Sequence[Any], narrow: bool) -> None:
    """Integers are equal; floats are near, with a few exceptions where a rounding to 16 bits fell the other way."""
    for got, want in zip(found, expected, strict=True):
        a, b = got.numpy(), want.numpy()
        assert a.shape == b.shape
        assert a.dtype == b.dtype
        if a.dtype.kind == "i":
            np.testing.assert_array_equal(a, b)
        else:
            np.testing.assert_allclose(a, b, rtol=3e-2 if narrow else 1e-4, atol=3e-2 if narrow else 1e-4)
