"""Adaptive pools, interpolation, pixels and windows against NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from cases import Case, check, compare, floats, sample, whole
from compared import exactly
from lambdas import unary

import tessera as ts
from tessera.dtypes.types import DType


def pooled(x: Any, sizes: tuple[int | None, ...], fold: Callable[..., Any]) -> Any:
    for axis, count in enumerate(sizes, 2):
        if count is None:
            continue
        size = x.shape[axis]
        bounds = [(at * size // count, math.ceil((at + 1) * size / count)) for at in range(count)]
        x = np.stack([fold(x.take(range(*ends), axis), axis=axis) for ends in bounds], axis)
    return x


def places(old: int, new: int, scale: float | None, corners: bool) -> Any:
    index = np.arange(new)
    if corners:
        return index * (old - 1) / max(new - 1, 1)
    ratio = old / new if scale is None else 1 / scale
    return (index + 0.5) * ratio - 0.5


def keys(t: Any) -> Any:
    t = np.abs(t)
    near = (1.25 * t - 2.25) * t * t + 1
    far = ((-0.75 * t + 3.75) * t - 6) * t + 3
    return np.where(t <= 1, near, np.where(t < 2, far, 0))


def resized(x: Any, sizes: tuple[int, ...], mode: str, scale: Any = None, corners: bool = False) -> Any:
    for axis, new in enumerate(sizes, 2):
        old = x.shape[axis]
        factor = None if scale is None else scale if isinstance(scale, float) else scale[axis - 2]
        if mode == "nearest":
            ratio = old / new if factor is None else 1 / factor
            x = x.take(np.minimum(np.floor(np.arange(new) * ratio + 1e-9).astype(int), old - 1), axis)
            continue
        place = places(old, new, factor, corners)
        if mode == "nearest-exact":
            x = x.take(np.clip(np.floor(place + 0.5 + 1e-9).astype(int), 0, old - 1), axis)
            continue
        if mode == "linear":
            place = np.maximum(place, 0)
            weight, reach = (unary(lambda t: np.maximum(1 - np.abs(t), 0))), range(2)
        else:
            weight, reach = keys, range(-1, 3)
        first = np.floor(place).astype(int)
        total: Any = 0.0
        for away in reach:
            share = weight(place - (first + away)).reshape(-1, *(1,) * (x.ndim - axis - 1))
            total = total + share * x.take(np.clip(first + away, 0, old - 1), axis)
        x = total
    return x


def image(size: int) -> Any:
    return (floats(size, 2, 5, 7),)


def of_image(mode: Any, sizes: tuple[int, int], *, corners: bool = False) -> Case:
    plain = "linear" if mode == "bilinear" else mode
    return Case(
        unary(lambda x: ts.interpolate(x, sizes, mode=mode, align_corners=corners)),
        unary(lambda x: resized(x, sizes, plain, corners=corners)),
        image,
    )


def scaled(mode: Any, scale: Any, sizes: tuple[int, int]) -> Case:
    plain = "linear" if mode == "bilinear" else mode
    return Case(
        unary(lambda x: ts.interpolate(x, scale_factor=scale, mode=mode)),
        unary(lambda x: resized(x, sizes, plain, scale)),
        image,
    )


CASES: dict[str, Case] = {
    "adaptive_avg_pool": Case(
        unary(lambda x: ts.adaptive_avg_pool(x, (3, 2))), unary(lambda x: pooled(x, (3, 2), np.mean)), image
    ),
    "adaptive_avg_pool, even": Case(
        unary(lambda x: ts.adaptive_avg_pool(x, (5, 1))), unary(lambda x: pooled(x, (5, 1), np.mean)), image
    ),
    "adaptive_avg_pool, more": Case(
        unary(lambda x: ts.adaptive_avg_pool(x, 9)), unary(lambda x: pooled(x, (9, 9), np.mean)), image
    ),
    "adaptive_max_pool": Case(
        unary(lambda x: ts.adaptive_max_pool(x, (None, 4))), unary(lambda x: pooled(x, (None, 4), np.max)), image
    ),
    "adaptive_max_pool, row": Case(
        unary(lambda x: ts.adaptive_max_pool(x, 3)),
        unary(lambda x: pooled(x, (3,), np.max)),
        lambda size: (floats(2, size, 8),),
    ),
    "nearest": of_image("nearest", (8, 3)),
    "nearest-exact": of_image("nearest-exact", (8, 3)),
    "bilinear": of_image("bilinear", (8, 3)),
    "bilinear, corners": of_image("bilinear", (8, 1), corners=True),
    "bicubic": of_image("bicubic", (9, 4)),
    "bicubic, corners": of_image("bicubic", (9, 4), corners=True),
    "area": Case(
        unary(lambda x: ts.interpolate(x, (3, 4), mode="area")), unary(lambda x: pooled(x, (3, 4), np.mean)), image
    ),
    "nearest, scaled": scaled("nearest", 2.0, (10, 14)),
    "bilinear, scaled": scaled("bilinear", (1.5, 0.5), (7, 3)),
    "bicubic, scaled": scaled("bicubic", (0.6, 1.3), (3, 9)),
    "linear, open": Case(
        unary(lambda x: ts.interpolate(x, 9, mode="linear")),
        unary(lambda x: resized(x, (9,), "linear")),
        lambda size: (floats(2, 1, size),),
    ),
    "nearest, open": Case(
        unary(lambda x: ts.interpolate(x, scale_factor=3, mode="nearest")),
        unary(lambda x: resized(x, (3 * x.shape[2],), "nearest")),
        lambda size: (floats(2, 1, size),),
    ),
    "trilinear": Case(
        unary(lambda x: ts.interpolate(x, (4, 2, 5), mode="trilinear")),
        unary(lambda x: resized(x, (4, 2, 5), "linear")),
        lambda size: (floats(size, 1, 3, 4, 2),),
    ),
    "pixel_shuffle": Case(
        unary(lambda x: ts.pixel_shuffle(x, 2)),
        unary(
            lambda x: (
                x.reshape(-1, 3, 2, 2, *x.shape[-2:])
                .transpose(0, 1, 4, 2, 5, 3)
                .reshape(-1, 3, 2 * x.shape[-2], 2 * x.shape[-1])
            )
        ),
        lambda size: (floats(2, 12, size, 5),),
    ),
    "pixel_unshuffle": Case(
        unary(lambda x: (ts.pixel_unshuffle(x, 2), ts.pixel_shuffle(ts.pixel_unshuffle(x, 2), 2))),
        unary(
            lambda x: (
                x.reshape(3, x.shape[1] // 2, 2, x.shape[2] // 2, 2)
                .transpose(0, 2, 4, 1, 3)
                .reshape(12, x.shape[1] // 2, x.shape[2] // 2),
                x,
            )
        ),
        lambda size: (floats(3, 2 * size, 4),),
    ),
}


def columns(x: Any, window: tuple[int, int], stride: int, padding: int, dilation: int) -> Any:
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    counts = [
        (size - dilation * (width - 1) - 1) // stride + 1 for size, width in zip(x.shape[2:], window, strict=True)
    ]
    parts = [
        x[
            :,
            :,
            row * dilation : row * dilation + (counts[0] - 1) * stride + 1 : stride,
            column * dilation : column * dilation + (counts[1] - 1) * stride + 1 : stride,
        ].reshape(*x.shape[:2], -1)
        for row, column in product(*map(range, window))
    ]
    return np.stack(parts, 2).reshape(x.shape[0], -1, math.prod(counts))


OPTIONS = [(1, 0, 1), (2, 1, 1), (1, 2, 2)]


@pytest.mark.quick(9)
@pytest.mark.parametrize("dtype", [ts.f32, ts.f64], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_values(name: str, dtype: DType) -> None:
    check(CASES[name], dtype, (2, 3, 5) if "open" in name else (2, 3))


@pytest.mark.parametrize("name", sample(CASES, ("adaptive_avg_pool", "bilinear")))
def test_native_values(name: str) -> None:
    check(CASES[name], ts.f32, (2, 3))


@pytest.mark.parametrize(("stride", "padding", "dilation"), OPTIONS)
def test_unfolding(stride: int, padding: int, dilation: int) -> None:
    x = floats(2, 2, 5, 7)
    expected = columns(x, (2, 3), stride, padding, dilation)
    compare(ts.unfold(x, (2, 3), stride=stride, padding=padding, dilation=dilation), expected, ts.f64)


@pytest.mark.parametrize(("stride", "padding", "dilation"), OPTIONS)
def test_folding_is_the_transpose_of_unfolding(stride: int, padding: int, dilation: int) -> None:
    """⟨unfold(x), y⟩ = ⟨x, fold(y)⟩."""
    options = {"stride": stride, "padding": padding, "dilation": dilation}
    x = floats(2, 2, 5, 7)
    laid = ts.unfold(x, (2, 3), **options)
    other = floats(*laid.shape, seed=3)
    back = ts.fold(other, (5, 7), (2, 3), **options)
    assert back.shape == x.shape
    np.testing.assert_allclose((laid.numpy() * other).sum(), (x * back.numpy()).sum(), rtol=1e-12)
    exactly(ts.jit(unary(lambda y: ts.fold(y, (5, 7), (2, 3), **options)))(other), back.numpy())


def test_one_program_for_open_sizes() -> None:
    @ts.jit
    def doubled(x: ts.Tensor["N", 2, "H", "W"]) -> Any:  # noqa: F821, UP037  (names of sizes)
        return ts.interpolate(x, scale_factor=2, mode="bilinear"), ts.pixel_unshuffle(
            ts.interpolate(x, scale_factor=2), 2
        )

    for shape in ((1, 2, 3, 4), (2, 2, 5, 1), (1, 2, 2, 2)):
        x = floats(*shape).astype(np.float32)
        sizes = (2 * shape[2], 2 * shape[3])
        found, apart = doubled(x)
        compare(found, resized(x.astype(np.float64), sizes, "linear"), ts.f32)
        assert apart.shape == (shape[0], 8, *shape[2:])
    assert doubled.explain().compilations == 1


def test_whole_numbers_and_nothing() -> None:
    x = whole(1, 1, 3, below=9)
    exactly(ts.interpolate(x, 6), x.repeat(2, -1))
    assert ts.interpolate(ts.zeros((0, 2, 3, 3)), (5, 4), mode="bilinear").shape == (0, 2, 5, 4)
    assert ts.adaptive_max_pool(ts.zeros((0, 2, 3)), 2).shape == (0, 2, 2)
    infinite = ts.asarray([[[np.inf, 1.0, 2.0, 3.0, 5.0]]])
    assert ts.adaptive_avg_pool(infinite, 3).tolist() == [[[math.inf, 2.0, 4.0]]]
    narrow = ts.asarray(floats(1, 1, 4, 4)).to(ts.bf16)
    assert ts.interpolate(narrow, (8, 8), mode="bicubic").dtype is ts.bf16
    assert ts.fold(ts.ones((1, 4, 4), ts.i32), (3, 3), 2).tolist() == [[[[1, 2, 1], [2, 4, 2], [1, 2, 1]]]]


def test_what_does_not_fit_is_refused() -> None:
    x = ts.zeros((1, 2, 4, 4))
    with pytest.raises(ts.TesseraError, match="either size= or scale_factor="):
        ts.interpolate(x)
    with pytest.raises(ts.TesseraError, match="mode is one of nearest, nearest-exact"):
        ts.interpolate(x, 8, mode="cubic")  # pyright: ignore[reportArgumentType]  # that it is wrong is the point
    with pytest.raises(ts.ShapeError, match=r"linear is for 1 axes after \[batch, channels\], got 2"):
        ts.interpolate(x, 8, mode="linear")
    with pytest.raises(ts.ShapeError, match="expected a size above 0, or one for each of 2 axes"):
        ts.interpolate(x, (8, 8, 8))
    with pytest.raises(ts.ShapeError, match="expected a factor above 0"):
        ts.interpolate(x, scale_factor=-1.0)
    with pytest.raises(ts.ShapeError, match=r"axis 2 times 0\.125 has no elements"):
        ts.interpolate(x, scale_factor=0.125)
    with pytest.raises(ts.TesseraError, match="align_corners is not for nearest"):
        ts.interpolate(x, 8, align_corners=True)
    with pytest.raises(ts.DtypeError, match="interpolate expects a float tensor"):
        ts.interpolate(x.to(ts.i32), 8, mode="bilinear")
    with pytest.raises(ts.ShapeError, match="adaptive_avg_pool: expected a size from 1 on"):
        ts.adaptive_avg_pool(x, 0)
    with pytest.raises(ts.ShapeError, match="adaptive_max_pool: axis 2 has no elements"):
        ts.adaptive_max_pool(ts.zeros((1, 2, 0)), 2)
    with pytest.raises(ts.ShapeError, match="pixel_shuffle: axis 1 has size 2, which 4 does not divide"):
        ts.pixel_shuffle(x, 2)
    with pytest.raises(ts.TesseraError, match="expected a factor from 1 on"):
        ts.pixel_unshuffle(x, 0)
    with pytest.raises(ts.ShapeError, match="fold: 3 columns, and 9 windows"):
        ts.fold(ts.zeros((1, 4, 3)), (4, 4), 2)


@pytest.mark.peers
@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic", "area"])
def test_torch_says_the_same(mode: Any, corners: bool) -> None:
    torch = pytest.importorskip("torch")
    if corners and not mode.startswith("bi"):
        return
    x = floats(2, 3, 5, 7).astype(np.float32)
    options = {"align_corners": True} if corners else {}
    for size in ((8, 3), (10, 14), (1, 9)):
        expected = torch.nn.functional.interpolate(torch.from_numpy(x), size, mode=mode, **options)
        found = ts.interpolate(x, size, mode=mode, align_corners=corners)
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-4, atol=1e-5)
