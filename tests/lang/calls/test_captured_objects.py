"""Jitted functions that capture objects are kept by what is in these; `explain()` says why others are not."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from lambdas import unary

import tessera as ts
from tessera import jit, knobs
from tessera.lang.calls.object_fingerprint import ObjectFingerprints
from tessera.runtime.cache.store import key_of
from tessera.tile.identity.fingerprint import NoFingerprint


class Pair(NamedTuple):
    rate: float
    times: int


@dataclass
class Config:
    scale: float
    more: dict[str, Any]


@dataclass(frozen=True)
class Frozen:
    scale: float = 2.0


class Kind(Enum):
    SUM = "sum"
    MEAN = "mean"


class Layer:
    factor = 2.0

    def __init__(self, weight: Any, config: Config) -> None:
        self.weight = weight
        self.config = config

    def __call__(self, x: Any) -> Any:
        return x @ self.weight * self.config.scale * self.factor


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value: float) -> None:
        self.value = value


class Tree:
    def __init__(self, value: int) -> None:
        self.value = value
        self.myself = self


@pytest.fixture(autouse=True)
def _compiled(tmp_path: Path) -> Iterator[None]:
    with knobs.backend.using("cpu"), knobs.cache_dir.using(tmp_path):
        yield


MAKERS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "named tuple": (lambda: Pair(0.5, 2), lambda: Pair(0.5, 3)),
    "dataclass": (lambda: Config(1.0, {"a": [1, 2]}), lambda: Config(1.0, {"a": [1, 3]})),
    "frozen dataclass": (Frozen, lambda: Frozen(3.0)),
    "dictionary": (lambda: {"a": 1, "b": {"c": (1, 2.0)}}, lambda: {"a": 1, "b": {"c": (1, 2)}}),
    "order of a dictionary": (lambda: {"a": 1, "b": 2}, lambda: {"b": 2, "a": 1}),
    "list": (lambda: [1, "a", None], lambda: [1, "a", False]),
    "set": (lambda: {1, 2}, lambda: {1, 3}),
    "member of an enum": (lambda: Kind.SUM, lambda: Kind.MEAN),
    "object": (lambda: Layer(3, Config(1.0, {})), lambda: Layer(3, Config(2.0, {}))),
    "slots": (lambda: Slotted(1.0), lambda: Slotted(2.0)),
    "object that leads to itself": (lambda: Tree(1), lambda: Tree(2)),
    "class": (lambda: Layer, lambda: Tree),
    "tensor": (lambda: ts.ones((2, 3)), lambda: ts.ones((2, 4))),
    "numbers of NumPy": (lambda: np.ones(3), lambda: np.zeros(3)),
}


def told(value: Any) -> str:
    """A value as it is in keys: 1 and 1.0 are two."""
    return key_of(ObjectFingerprints.told(value)[0])


@pytest.mark.parametrize("name", MAKERS)
def test_values_are_told_by_what_is_in_them(name: str) -> None:
    one, other = MAKERS[name]
    assert told(one()) == told(one())
    assert told(one()) != told(other())


def test_methods_are_part_of_objects() -> None:
    def made(body: str) -> Any:
        names: dict[str, Any] = {"__name__": "somewhere"}
        text = f"class Model:\n    def __call__(self, x):\n        return {body}\n"
        exec(compile(text, "somewhere.py", "exec"), names)
        return names["Model"]()

    assert told(made("x + 1")) == told(made("x + 1"))
    assert told(made("x + 1")) != told(made("x + 2"))
    with pytest.raises(NoFingerprint, match=r"type builtins\.object"):
        ObjectFingerprints.told(object())


@pytest.mark.parametrize(
    "value", [threading.Lock(), iter([1]), np.array([object()]), object()], ids=["lock", "iterator", "array", "object"]
)
def test_what_cannot_be_told_is_named(value: Any) -> None:
    function = jit(unary(lambda x: (value, x * 2.0)[1]))
    function(ts.ones(3))
    (variant,) = function.explain().variants
    assert variant.unkept is not None
    assert "it depends on" in variant.unkept
    assert "not kept on the disk: it depends on" in str(function.explain())


def test_a_model_is_found_with_its_weights() -> None:
    layer, config, pair = Layer(ts.ones((4, 3)), Config(2.0, {})), {"shift": 0.5}, Pair(1.5, 2)

    def run(x: Any) -> Any:
        return layer(x) * pair.rate + config["shift"]

    x = ts.ones((2, 4))
    first, second = jit(run), jit(run)
    expected = first(x)
    assert first.explain().variants[0].unkept is None
    assert second(x).tolist() == expected.tolist()
    assert second.explain().found == 1
    layer.weight.numpy()[...] = 2.0
    assert second(x).tolist() == [[48.5] * 3] * 2
    layer.weight = ts.full((4, 3), 3.0)
    assert second(x).tolist() == [[72.5] * 3] * 2
    config["shift"] = 1.0
    assert second(x).tolist() == [[73.0] * 3] * 2
    layer.config.scale = 1.0
    assert second(x).tolist() == [[37.0] * 3] * 2
    assert jit(run)(x).tolist() == [[37.0] * 3] * 2


def test_what_tracing_changes_is_not_kept() -> None:
    seen: list[Any] = []

    @jit
    def noted(x: Any) -> Any:
        seen.append(x.shape)
        return x * 2.0

    noted(ts.ones(3))
    (variant,) = noted.explain().variants
    assert variant.unkept == "tracing it changes something that it captures"


def test_what_python_reads_of_tensors_is_not_kept() -> None:
    number = ts.asarray(2.0)
    read = jit(unary(lambda x: x * float(number)))
    assert read(ts.ones(2)).tolist() == [2.0, 2.0]
    (variant,) = read.explain().variants
    assert variant.unkept is not None
    assert "reads elements" in variant.unkept
