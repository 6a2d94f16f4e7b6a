"""Transposed convolutions against sums over windows in NumPy: strides, padding, dilation, groups, one to three axes."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from cases import Case, check, compare, floats, sample
from hypothesis import given, settings
from hypothesis import strategies as st
from lambdas import ternary

import tessera as ts
from tessera.dtypes.types import DType

FUNCTIONS = {1: ts.conv_transpose1d, 2: ts.conv_transpose2d, 3: ts.conv_transpose3d}
CONVOLUTIONS = {1: ts.conv1d, 2: ts.conv2d, 3: ts.conv3d}


def several(value: Any, rank: int) -> tuple[int, ...]:
    return (value,) * rank if isinstance(value, int) else tuple(value)


def transposed(x: Any, w: Any, **options: Any) -> Any:
    """Each element adds its filters to a window of the result."""
    rank, groups = x.ndim - 2, options.get("groups", 1)
    steps, gaps = several(options.get("stride", 1), rank), several(options.get("dilation", 1), rank)
    edges, more = several(options.get("padding", 0), rank), several(options.get("output_padding", 0), rank)
    window = w.shape[2:]
    whole = [
        (size - 1) * step + gap * (width - 1) + extra + 1
        for size, step, gap, width, extra in zip(x.shape[2:], steps, gaps, window, more, strict=True)
    ]
    found = np.zeros((x.shape[0], w.shape[1] * groups, *whole))
    parts = list(zip(np.split(x, groups, 1), np.split(w, groups, 0), strict=True))
    for tap in product(*map(range, window)):
        values = [np.tensordot(part, filters[(..., *tap)], ((1,), (0,))) for part, filters in parts]
        terms = np.concatenate([np.moveaxis(value, -1, 1) for value in values], 1)
        spots = [
            slice(at * gap, at * gap + (size - 1) * step + 1, step)
            for at, gap, step, size in zip(tap, gaps, steps, x.shape[2:], strict=True)
        ]
        found[(..., *spots)] += terms
    ends = [slice(edge, size - edge) for edge, size in zip(edges, whole, strict=True)]
    return found[(..., *ends)]


def of(rank: int, window: tuple[int, ...], *, channels: int = 4, filters: int = 3, **options: Any) -> Case:
    groups = options.get("groups", 1)
    return Case(
        ternary(lambda x, w, b: FUNCTIONS[rank](x, w, b, **options)),
        ternary(lambda x, w, b: transposed(x, w, **options) + b.reshape(-1, *(1,) * rank)),
        lambda size: (
            floats(size, channels, *(5, 4, 3)[:rank]),
            floats(channels, filters, *window),
            floats(filters * groups),
        ),
    )


CASES: dict[str, Case] = {
    "row": of(1, (3,)),
    "row, strided": of(1, (4,), stride=2, padding=1),
    "row, strides beyond windows": of(1, (2,), stride=3, output_padding=1),
    "row, dilated": of(1, (3,), stride=2, dilation=3, padding=2, output_padding=2),
    "row, cut inside": of(1, (3,), stride=2, padding=3),
    "plane": of(2, (3, 2)),
    "plane, strided": of(2, (4, 4), stride=2, padding=1),
    "plane, mixed": of(2, (3, 2), stride=(2, 3), padding=(1, 0), output_padding=(1, 2), dilation=(2, 1)),
    "plane, groups": of(2, (3, 3), stride=2, padding=1, output_padding=1, groups=2),
    "plane, depthwise": of(2, (2, 2), filters=1, stride=2, groups=4),
    "space": of(3, (2, 3, 2), stride=(2, 1, 2), padding=(0, 1, 1)),
}


@pytest.mark.quick(6)
@pytest.mark.parametrize("dtype", [ts.f32, ts.f64], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_values(name: str, dtype: DType) -> None:
    check(CASES[name], dtype, (2, 3))


@pytest.mark.parametrize("name", sample(CASES, ("row, strided",)))
def test_native_values(name: str) -> None:
    check(CASES[name], ts.f32, (2, 3))


@settings(max_examples=10)
@given(data=st.data())
def test_it_is_the_gradient_of_a_convolution(data: st.DataObject) -> None:
    """⟨conv(x), y⟩ = ⟨x, conv_transpose(y)⟩, with the same weight and options."""
    width, stride, gap = (data.draw(st.integers(1, 4)) for _ in range(3))
    edge = data.draw(st.integers(0, 3))
    length = data.draw(st.integers(max(1, gap * (width - 1) + 1 - 2 * edge), 14))
    extra = (length + 2 * edge - gap * (width - 1) - 1) % stride
    x, w = floats(2, 3, length), floats(4, 3, width)
    options = {"stride": stride, "padding": edge, "dilation": gap}
    y = ts.conv1d(x, w, **options)
    other = floats(*y.shape, seed=1)
    if extra >= max(stride, gap):
        return
    back = ts.conv_transpose1d(other, w, output_padding=extra, **options)
    assert back.shape == x.shape
    np.testing.assert_allclose((y.numpy() * other).sum(), (x * back.numpy()).sum(), rtol=1e-10, atol=1e-10)


def test_convolution_in_space() -> None:
    x, w = floats(2, 3, 4, 5, 3), floats(6, 3, 2, 3, 2)
    windows = np.lib.stride_tricks.sliding_window_view(x, (2, 3, 2), (2, 3, 4))
    expected = np.moveaxis(np.tensordot(windows, w, ((1, 5, 6, 7), (1, 2, 3, 4))), -1, 1)
    compare(ts.conv3d(x, w), expected, ts.f64)


def test_narrow_floats() -> None:
    x, w = (ts.asarray(one).to(ts.bf16) for one in (floats(1, 4, 5, 5), floats(4, 2, 3, 3)))
    found = ts.conv_transpose2d(x, w, stride=2)
    assert found.dtype is ts.bf16
    expected = transposed(x.to(ts.f64).numpy(), w.to(ts.f64).numpy(), stride=2)
    assert np.abs(found.to(ts.f64).numpy() - expected).max() <= 2**-7 * np.abs(expected).max()


def test_no_batch() -> None:
    assert ts.conv_transpose1d(ts.zeros((0, 2, 4)), ts.zeros((2, 3, 2)), stride=2).shape == (0, 3, 8)


def test_what_does_not_fit_is_refused() -> None:
    x, w = ts.zeros((1, 4, 5)), ts.zeros((4, 2, 3))
    with pytest.raises(ts.ShapeError, match=r"conv_transpose1d: expected x as \[batch, channels, …\]"):
        ts.conv_transpose1d(x[0], w)
    with pytest.raises(ts.ShapeError, match="4 channels in 3 groups do not fit a weight of 4 channels"):
        ts.conv_transpose1d(x, w, groups=3)
    with pytest.raises(ts.ShapeError, match="output_padding 2 is not below the stride 2"):
        ts.conv_transpose1d(x, w, stride=2, output_padding=2)
    with pytest.raises(ts.ShapeError, match=r"of \[5\] elements, and padding 4, no element is left"):
        ts.conv_transpose1d(x, w, padding=4)
    with pytest.raises(ts.ShapeError, match="stride is one number from 1 on"):
        ts.conv_transpose1d(x, w, stride=0)


@pytest.mark.peers
@pytest.mark.parametrize("name", CASES)
def test_torch_says_the_same(name: str) -> None:
    torch = pytest.importorskip("torch")
    x, w, b = (one.astype(np.float32) for one in CASES[name].arguments(2))
    rank = x.ndim - 2
    options = {"stride": 3, "padding": 1, "output_padding": 2, "dilation": 2}
    bias = b[: w.shape[1]]
    expected = getattr(torch.nn.functional, f"conv_transpose{rank}d")(*map(torch.from_numpy, (x, w, bias)), **options)
    found = FUNCTIONS[rank](x, w, bias, **options)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-4, atol=1e-4)
