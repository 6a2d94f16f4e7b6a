"""Trees in files: every type and structure comes back, readers of safetensors know them, and broken files are told."""

from __future__ import annotations

import json
import os
import pickle
import struct
from collections import OrderedDict
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tessera as ts
from tessera.dtypes.types import ALL
from tessera.errors import ResourceError, TesseraError

POLICIES = (
    *(ts.bf16 @ ts.accum(ts.f32), ts.f16 @ ts.loss_scale(1024.0), ts.f8e4m3 @ ts.saturate),
    *(ts.bf16 @ ts.stochastic_round @ ts.accum(ts.f64), ts.i8 @ ts.scaled(1)),
)


def some(dtype: ts.DType, shape: tuple[int, ...] = (3, 5)) -> ts.Tensor:
    values = np.random.default_rng(len(str(dtype))).integers(0, 2, shape)
    if dtype.policy.scale_axis is not None:
        return ts.quantize(values.astype(np.float32), dtype).values
    return ts.asarray(values).to(dtype, seed=1 if dtype.policy.stochastic else None)


def same(left: Any, right: Any) -> bool:
    return left.dtype is right.dtype and left.shape == right.shape and left.numpy().tobytes() == right.numpy().tobytes()


@pytest.mark.parametrize("dtype", [*ALL, *POLICIES], ids=str)
def test_every_type_comes_back(dtype: ts.DType, tmp_path: Path) -> None:
    x = some(dtype)
    if dtype.bits == 4 and not dtype.is_float:
        x = ts.asarray([int(dtype.min_value), int(dtype.max_value), 0, 1]).to(dtype)
    ts.save(tmp_path / "x", {"x": x, "empty": x[:0], "scalar": x.reshape(-1)[0], "across": x.reshape(1, -1).mT})
    found = ts.load(tmp_path / "x")
    assert list(found) == ["x", "empty", "scalar", "across"]
    for name, expected in (("x", x), ("empty", x[:0]), ("scalar", x.reshape(-1)[0]), ("across", x.reshape(-1, 1))):
        assert same(found[name], expected)


leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False),
    st.text(max_size=5),
    st.sampled_from([ts.ones(3), ts.zeros((2, 0)), ts.asarray(2.5, ts.bf16), ts.arange(20)]),
)
trees = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3) | st.integers(-3, 3), inner, max_size=3)
    ),
    max_leaves=8,
)


def _is_a(value: object, *kinds: type) -> bool:
    return isinstance(value, kinds)


def check_equal(left: Any, right: Any) -> None:
    assert type(left) is type(right)
    if isinstance(left, ts.Tensor):
        assert same(left, right)
    elif _is_a(left, dict):
        assert list(left) == list(right)
        for key in left:
            check_equal(left[key], right[key])
    elif _is_a(left, list, tuple):
        assert len(left) == len(right)
        for one, other in zip(left, right, strict=True):
            check_equal(one, other)
    else:
        assert left == right


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=trees)
def test_every_tree_comes_back(tmp_path: Path, tree: Any) -> None:
    ts.save(tmp_path / "tree", tree)
    check_equal(ts.load(tmp_path / "tree"), tree)


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclass
class Layer:
    weight: Any
    bias: Any


ts.register_node(Layer, lambda layer: ((layer.weight, layer.bias), None), lambda _, parts: Layer(*parts))


def test_classes_need_an_example(tmp_path: Path) -> None:
    tree = {"layers": [Layer(ts.ones((2, 3)), None), Pair(ts.zeros(4), 2.5)], "step": 7}
    ts.save(tmp_path / "model", tree)
    with pytest.raises(ResourceError, match=r"the tree\['layers'\]\[0\] of .* is a .*Layer") as caught:
        ts.load(tmp_path / "model")
    assert "like=" in str(caught.value.hint)
    example = {"layers": [Layer(ts.zeros((2, 3)), None), Pair(ts.ones(4), 0.0)], "step": 0}
    found = ts.load(tmp_path / "model", like=example)
    layer, pair = found["layers"]
    assert (type(layer), type(pair), found["step"], pair.right) == (Layer, Pair, 7, 2.5)
    assert same(layer.weight, ts.ones((2, 3)))
    assert same(pair.left, ts.zeros(4))
    refused: list[tuple[object, str]] = [
        ({"layers": [], "step": 0}, "it has layers.0.0"),
        ({**example, "more": ts.ones(1)}, "it has no more"),
        ({"layers": [Layer(ts.zeros((3, 3)), None), Pair(ts.ones(4), 0.0)], "step": 0}, "another shape"),
    ]
    for wrong, said in refused:
        with pytest.raises(ResourceError, match=said):
            ts.load(tmp_path / "model", like=wrong)


def test_quantized_tensors(tmp_path: Path) -> None:
    weights = ts.quantize(ts.randn((4, 64), seed=1), ts.i8 @ ts.scaled(0))
    ts.save(tmp_path / "w", {"w": weights})
    for found in (ts.load(tmp_path / "w")["w"], ts.load(tmp_path / "w", like={"w": weights})["w"]):
        assert isinstance(found, ts.QuantizedTensor)
        assert found.dtype is weights.dtype
        assert same(found.values, weights.values)
        assert same(found.scales, weights.scales)


def test_arrays_of_other_libraries_come_back_as_tensors(tmp_path: Path) -> None:
    ts.save(tmp_path / "x", [np.arange(3.0), np.float32(2.0), OrderedDict()])
    with pytest.raises(ResourceError, match="OrderedDict"):
        ts.load(tmp_path / "x")
    ts.save(tmp_path / "x", [np.arange(3.0), np.float32(2.0)])
    found = ts.load(tmp_path / "x")
    assert (found[0].dtype, found[0].tolist(), found[1].dtype, found[1].item()) == (
        ts.f64,
        [0.0, 1.0, 2.0],
        ts.f32,
        2.0,
    )


def header(path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + length])


def test_the_file_is_one_of_safetensors(tmp_path: Path) -> None:
    tree = {"a": ts.ones(3, ts.bf16), "b": [ts.arange(16), ts.ones((2, 2), ts.i4)], "a.b": ts.ones(1), "n": 3}
    ts.save(tmp_path / "x.safetensors", tree)
    found = header(tmp_path / "x.safetensors")
    metadata = found.pop("__metadata__")
    assert all(isinstance(value, str) for value in metadata.values())
    assert {name: (one["dtype"], tuple(one["shape"])) for name, one in found.items()} == {
        "a": ("BF16", (3,)),
        "b.0": ("I64", (16,)),
        "b.1": ("U8", (2, 2)),
        "a.b": ("F32", (1,)),
    }
    ends = sorted(one["data_offsets"] for one in found.values())
    assert ends[0][0] == 0
    assert all(one[1] == other[0] for one, other in pairwise(ends))


def test_names_that_meet_are_told_apart(tmp_path: Path) -> None:
    tree = {"a": {"b": ts.zeros(1)}, "a.b": ts.ones(1), "a.b~2": ts.full(1, 2.0), "__metadata__": ts.full(1, 3.0)}
    ts.save(tmp_path / "x", tree)
    check_equal(ts.load(tmp_path / "x"), tree)
    check_equal(ts.load(tmp_path / "x", like=tree), tree)


def written(path: Path, entries: dict[str, Any], data: bytes = b"", metadata: Any = None) -> Path:
    text = json.dumps({**({} if metadata is None else {"__metadata__": metadata}), **entries}).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def test_files_of_others(tmp_path: Path) -> None:
    values = np.arange(6, dtype=np.float32)
    entries = {
        "w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
        "b": {"dtype": "BOOL", "shape": [2], "data_offsets": [24, 26]},
    }
    found = ts.load(written(tmp_path / "x", entries, values.tobytes() + b"\0\1", {"format": "pt"}))
    assert list(found) == ["w", "b"]
    assert found["w"].tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert found["b"].tolist() == [False, True]
    assert ts.load(written(tmp_path / "none", {})) == {}


ONE = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
BROKEN: dict[str, tuple[dict[str, Any], bytes, Any, str]] = {
    "gap": ({"x": {**ONE, "data_offsets": [4, 8]}}, bytes(8), None, "does not begin where the one before ends"),
    "overlap": ({"x": ONE, "y": {**ONE, "data_offsets": [2, 6]}}, bytes(6), None, "does not begin"),
    "too short": ({"x": ONE}, bytes(3), None, "end at byte"),
    "too long": ({"x": ONE}, bytes(5), None, "end at byte"),
    "wrong size": ({"x": {**ONE, "shape": [2]}}, bytes(4), None, "says nothing about tensors"),
    "negative": ({"x": {**ONE, "shape": [-1], "data_offsets": [4, 0]}}, b"", None, "says nothing about tensors"),
    "a float": ({"x": {**ONE, "shape": [1.0]}}, bytes(4), None, "says nothing about tensors"),
    "unknown type": ({"x": {**ONE, "dtype": "C64"}}, bytes(4), None, "no element type for 'C64'"),
    "no entry": ({"x": 3}, bytes(4), None, "says nothing about tensors"),
    "a bool of 2": ({"x": {"dtype": "BOOL", "shape": [1], "data_offsets": [0, 1]}}, b"\2", None, "none of bool"),
    "no such tensor": ({}, b"", {"tessera": '{"version":1,"tree":{"tensor":"x"}}'}, "names a tensor 'x'"),
    "damaged tree": ({}, b"", {"tessera": '{"version":1,"tree":{"list":3}}'}, "says nothing"),
    "newer": ({}, b"", {"tessera": '{"version":2,"tree":{}}'}, "version 2"),
    "bad type": ({"x": ONE}, bytes(4), {"tessera": '{"version":1,"types":{"x":{"name":"i64"}}}'}, "says nothing"),
    "bad policy": (
        {"x": ONE},
        bytes(4),
        {"tessera": '{"version":1,"types":{"x":{"name":"f32","loss_scale":3.0}}}'},
        "power of two",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_are_told(name: str, tmp_path: Path) -> None:
    entries, data, metadata, said = BROKEN[name]
    with pytest.raises(ResourceError, match=said) as caught:
        ts.load(written(tmp_path / "x", entries, data, metadata))
    assert caught.value.hint


def test_every_cut_is_noticed(tmp_path: Path) -> None:
    ts.save(tmp_path / "x", {"a": ts.ones(7), "b": [ts.arange(3), 2]})
    whole = (tmp_path / "x").read_bytes()
    for count in {0, 1, 7, 8, 9, 40, len(whole) // 2, len(whole) - 57, len(whole) - 1}:
        (tmp_path / "cut").write_bytes(whole[:count])
        with pytest.raises(ResourceError) as caught:
            ts.load(tmp_path / "cut")
        assert caught.value.hint


@given(st.binary(max_size=200))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_noise_is_refused(tmp_path: Path, noise: bytes) -> None:
    (tmp_path / "noise").write_bytes(noise)
    with pytest.raises(ResourceError):
        ts.load(tmp_path / "noise")


def test_files_of_other_kinds_are_named(tmp_path: Path) -> None:
    x = np.ones(100)
    np.savez(tmp_path / "x.npz", x=x)
    np.save(tmp_path / "x.npy", x)
    (tmp_path / "x.pkl").write_bytes(pickle.dumps({"x": x}))
    for name, said in (
        ("x.npz", "a zip archive"),
        ("x.npy", "an array of NumPy"),
        ("x.pkl", "a pickle, which is code"),
    ):
        with pytest.raises(ResourceError, match=said):
            ts.load(tmp_path / name)


def test_what_cannot_be_written(tmp_path: Path) -> None:
    for tree, said in (
        ({"f": len}, r"the tree\['f'\] is a builtin_function_or_method"),
        ([{(1, 2): ts.ones(1)}], r"the tree\[0\] has the key \(1, 2\)"),
        (1 + 2j, "the tree is a complex"),
    ):
        with pytest.raises(TesseraError, match=said):
            ts.save(tmp_path / "x", tree)
    with pytest.raises(TesseraError, match="expected the path of a file first") as caught:
        ts.save(ts.ones(1), tmp_path / "x")  # pyright: ignore[reportArgumentType]
    assert "ts.save(path, tree)" in str(caught.value.hint)
    with pytest.raises(ResourceError, match="cannot be written") as missing:
        ts.save(tmp_path / "no" / "x", ts.ones(1))
    assert isinstance(missing.value.__cause__, OSError)
    with pytest.raises(ResourceError, match="cannot be read") as nothing:
        ts.load(tmp_path / "no")
    assert isinstance(nothing.value.__cause__, FileNotFoundError)
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_there_as_a_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ts.save(tmp_path / "x", ts.ones(3))

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(ResourceError, match="No space left"):
        ts.save(tmp_path / "x", ts.zeros(3))
    monkeypatch.undo()
    assert [one.name for one in tmp_path.iterdir()] == ["x"]
    assert ts.load(tmp_path / "x").tolist() == [1.0, 1.0, 1.0]


def test_files_are_as_open_as_others(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(b"")
    ts.save(tmp_path / "x", ts.ones(1))
    assert (tmp_path / "x").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_large_tensors_are_mapped(tmp_path: Path) -> None:
    tree = {"odd": ts.ones(3), "w": ts.randn((1000, 300), seed=1), "b": ts.ones(16)}
    ts.save(tmp_path / "x", tree)
    found = ts.load(tmp_path / "x")
    for name in ("w", "b"):
        assert found[name].meta is tree[name].meta
        base: Any = found[name].numpy()
        while isinstance(base, np.ndarray):
            base = base.base
        assert type(getattr(base, "obj", base)).__name__ == "mmap"
    assert found["odd"].meta is tree["odd"].meta
    found["w"][0] = 7.0
    assert found["w"][0, 0].item() == 7.0
    assert same(ts.load(tmp_path / "x")["w"], tree["w"])
    ts.save(tmp_path / "x", {"w": found["w"] * 2})  # over the file that is mapped
    assert found["w"][1].tolist() == tree["w"][1].tolist()
    assert ts.load(tmp_path / "x")["w"][0, 0].item() == 14.0
    assert (found["w"] + 1).shape == (1000, 300)


def test_results_of_functions_are_saved(tmp_path: Path) -> None:
    doubled = ts.jit(lambda *x: {"y": x[0] * 2, "n": 3})(ts.arange(4))
    ts.save(str(tmp_path / "x"), doubled)
    assert ts.load(str(tmp_path / "x"), device="cpu")["y"].tolist() == [0, 2, 4, 6]
