"""A small network learns to tell two spirals apart: a loss, its gradient and Adam, as one compiled program."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

import tessera as ts

Parameters = Any


def spirals(count: int, seed: int) -> tuple[ts.Tensor, ts.Tensor]:
    """Points of two spirals, and which of the two each is on."""
    numbers = np.random.default_rng(seed)
    label = np.arange(count) % 2
    angle = np.sqrt(numbers.random(count)) * 3 * np.pi
    sign = np.where(label == 1, 1.0, -1.0)
    points = np.stack([sign * angle * np.cos(angle), sign * angle * np.sin(angle)], axis=1) / (3 * np.pi)
    noise = numbers.standard_normal(points.shape) * 0.01
    return ts.asarray((points + noise).astype(np.float32)), ts.asarray(label.astype(np.float32))


def initial(sizes: list[int], seed: int) -> Parameters:
    numbers = np.random.default_rng(seed)
    layers: list[dict[str, ts.Tensor]] = []
    for size, following in pairwise(sizes):
        w = numbers.standard_normal((size, following)) * np.sqrt(2 / size)
        layers.append({"w": ts.asarray(w.astype(np.float32)), "b": ts.zeros((following,))})
    return layers


def scores(layers: Parameters, x: Any) -> Any:
    for layer in layers[:-1]:
        x = ts.gelu(x @ layer["w"] + layer["b"])
    return (x @ layers[-1]["w"] + layers[-1]["b"])[:, 0]


def loss(layers: Parameters, x: Any, label: Any) -> Any:
    """The cross entropy of a choice between two."""
    score = scores(layers, x)
    return ts.mean(ts.maximum(score, 0.0) - score * label + ts.log1p(ts.exp(-ts.abs(score))))


@ts.jit
def step(layers: Parameters, moments: Any, count: Any, x: Any, label: Any) -> tuple[Any, Parameters, Any]:
    """One step of Adam."""
    value, gradient = ts.value_and_grad(loss)(layers, x, label)

    def faster(m: Any, g: Any) -> Any:
        return 0.9 * m + 0.1 * g

    def slower(v: Any, g: Any) -> Any:
        return 0.99 * v + 0.01 * g * g

    rate = 0.01 * ts.sqrt(1.0 - 0.99**count) / (1.0 - 0.9**count)

    def updated(p: Any, m: Any, v: Any) -> Any:
        return p - rate * m / (ts.sqrt(v) + 1e-8)

    first, second = ts.tree_map(faster, moments[0], gradient), ts.tree_map(slower, moments[1], gradient)
    return value, ts.tree_map(updated, layers, first, second), (first, second)


def train(steps: int = 600) -> tuple[float, float, float]:
    """The loss before and after, and the share of new points that are told right."""
    x, label = spirals(512, 0)
    layers = initial([2, 32, 32, 1], 1)
    zeros = ts.tree_map(ts.zeros_like, layers)
    moments: Any = (zeros, zeros)
    losses: list[float] = []
    for count in range(1, steps + 1):
        value, layers, moments = step(layers, moments, ts.asarray(np.float32(count)), x, label)
        losses.append(float(value))
        if count % 100 == 0:
            print(f"step {count}: loss {losses[-1]:.4f}")
    points, expected = spirals(1000, 7)
    told = ts.jit(scores)(layers, points).numpy() > 0
    return losses[0], losses[-1], float(np.mean(told == (np.asarray(expected) > 0.5)))


if __name__ == "__main__":
    before, after, share = train()
    print(f"loss {before:.3f} -> {after:.4f}; {share:.1%} of new points are told right")
