"""Pytrees: tensors are leaves, containers come back as they were, registered classes and quantised tensors join in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tessera as ts
from tessera.dtypes.quantize import dequantize, quantize
from tessera.errors import DtypeError, TesseraError


def test_tensors_are_leaves() -> None:
    a, b, c = ts.ones(2), ts.zeros(3), ts.asarray(1)
    tree = {"weights": [a, (b, None)], "step": c, "name": "x"}
    leaves, structure = ts.tree_flatten(tree)
    assert [id(leaf) for leaf in leaves] == [id("x"), id(c), id(a), id(b)]
    rebuilt = ts.tree_unflatten(structure, leaves)
    assert rebuilt.keys() == tree.keys()
    assert rebuilt["weights"][0] is a
    assert rebuilt["weights"][1][1] is None
    assert len(ts.tree_leaves([a, [b], c])) == 3


def add(x: Any, y: Any = 1) -> Any:
    return x + y


def test_tree_map() -> None:
    doubled = ts.tree_map(add, {"a": ts.ones(2)}, {"a": ts.ones(2)})
    assert doubled["a"].tolist() == [2.0, 2.0]
    with pytest.raises(TesseraError, match="one structure") as caught:
        ts.tree_map(add, {"a": ts.ones(2)}, {"b": ts.ones(2)})
    assert caught.value.hint

    def fail(_: object) -> None:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        ts.tree_map(fail, [1])


@dataclass
class Pair:
    left: Any
    right: Any
    label: str


def rebuild(label: str, children: Iterable[Any]) -> Pair:
    left, right = children
    return Pair(left, right, label)


def test_registered_classes() -> None:
    ts.register_node(Pair, lambda pair: ((pair.left, pair.right), pair.label), rebuild)
    mapped = ts.tree_map(add, Pair(ts.zeros(1), [1, 2], "p"))
    assert (mapped.left.tolist(), mapped.right, mapped.label) == ([1.0], [2, 3], "p")


@pytest.mark.parametrize("dtype", [ts.i8 @ ts.scaled(0), ts.i4 @ ts.scaled(-1)], ids=str)
def test_quantised_tensors(dtype: ts.DType) -> None:
    x = ts.randn((6, 8), seed=3)
    q = ts.quantize(x, dtype)
    values, scales = quantize(x.numpy(), dtype)
    assert q.values.numpy().tobytes() == values.tobytes()
    assert q.values.dtype is q.dtype is dtype
    np.testing.assert_array_equal(q.scales.numpy(), scales)
    for target in (ts.f32, ts.bf16):
        expected = dequantize(values, scales, dtype, target)
        for found in (q.dequantize(target), ts.dequantize(q, target)):
            assert found.dtype is target
            assert found.numpy().tobytes() == expected.tobytes()
    error = np.abs(q.dequantize().numpy() - x.numpy())
    half = q.scales.numpy().reshape((6, 1) if dtype.policy.scale_axis == 0 else (1, 8)) / 2
    assert (error <= half * 1.0001).all()


def test_quantised_tensors_are_trees() -> None:
    q = ts.quantize(np.ones((2, 3), np.float32), ts.i8 @ ts.scaled(0))
    leaves, structure = ts.tree_flatten({"w": q})
    assert [leaf.shape for leaf in leaves] == [(2, 3), (2,)]
    again = ts.tree_unflatten(structure, leaves)["w"]
    assert type(again) is ts.QuantizedTensor
    assert again.dtype is q.dtype
    assert again.dequantize().tolist() == q.dequantize().tolist()


def test_quantised_integers_do_not_compute_as_plain_ones() -> None:
    q = ts.quantize(ts.ones((2, 3)), ts.i8 @ ts.scaled(0))
    for attempt in (lambda: q.values + q.values, lambda: q.values.to(ts.f32), lambda: q.values.to(ts.i8)):
        with pytest.raises(DtypeError, match=r"dequantize|scales"):
            attempt()
    with pytest.raises(DtypeError, match="plain values"):
        ts.quantize(ts.ones((2, 3), ts.f16 @ ts.loss_scale(2.0)), ts.i8 @ ts.scaled(0))
