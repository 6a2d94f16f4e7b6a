"""What people type from torch and NumPy: it works, or an error names the right spelling."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessera as ts
from tessera import knobs, ops
from tessera.errors import TesseraError
from tessera.lang import spellings
from tessera.lang.operator_registry import ALIASES, METHODS, OPERATORS, operator_named

PAGE = (Path(__file__).parents[3] / "docs" / "operators.md").read_text(encoding="utf-8")
N = np.arange(6, dtype=np.float32).reshape(2, 3) - 2
X = ts.asarray(N)
# Type checkers know arguments by the names that they have here.
by_habit: Any = ts


@pytest.fixture(autouse=True)
def _interpreted() -> Generator[None]:
    with knobs.interpret.using(True):
        yield


Case = tuple[Callable[[Any], Any], Any]
CASES: dict[str, Case] = {
    "axis by position": (lambda x: ts.sum(x, 0), N.sum(0)),
    "axis of a method": (lambda x: x.sum(0), N.sum(0)),
    "last axis": (lambda x: x.mean(-1), N.mean(-1)),
    "dim": (lambda x: by_habit.sum(x, dim=0), N.sum(0)),
    "dim and keepdim": (lambda x: x.max(dim=1, keepdim=True), N.max(1, keepdims=True)),
    "argmax": (lambda x: x.argmax(1), N.argmax(1)),
    "softmax": (lambda x: by_habit.softmax(x, dim=-1), np.exp(N) / np.exp(N).sum(-1, keepdims=True)),
    "ddof": (lambda x: by_habit.var(x, 0, ddof=1), N.var(0, ddof=1)),
    "cat": (lambda x: by_habit.cat([x, x], dim=1), np.concatenate([N, N], 1)),
    "concatenate": (lambda x: ts.concatenate([x, x]), np.concatenate([N, N])),
    "stack": (lambda x: ts.stack([x, x], 1), np.stack([N, N], 1)),
    "cumsum": (lambda x: x.cumsum(0), N.cumsum(0)),
    "cumsum of a function": (lambda x: by_habit.cumsum(x, dim=1), N.cumsum(1)),
    "clamp": (lambda x: ts.clamp(x, min=-1.0, max=1.0), N.clip(-1, 1)),
    "clip": (lambda x: by_habit.clip(x, a_min=-1.0, a_max=1.0), N.clip(-1, 1)),
    "clamp as a method": (lambda x: x.clamp(-1.0, 1.0), N.clip(-1, 1)),
    "logsumexp": (lambda x: by_habit.logsumexp(x, dim=1), np.log(np.exp(N).sum(1))),
    "view": (lambda x: x.view(3, 2), N.reshape(3, 2)),
    "view in one axis": (lambda x: x.view(-1), N.reshape(-1)),
    "t": (lambda x: x.t(), N.T),
    "transpose": (lambda x: x.transpose(0, 1), N.T),
    "swapaxes": (lambda x: ts.swapaxes(x, 0, 1), N.T),
    "permute": (lambda x: ts.permute(x, (1, 0)), N.T),
    "permute by dims": (lambda x: by_habit.permute(x, dims=(1, 0)), N.T),
    "unsqueeze": (lambda x: x.unsqueeze(0), N[None]),
    "unsqueeze by dim": (lambda x: x.unsqueeze(dim=1), N[:, None]),
    "masked_fill": (lambda x: x.masked_fill(x > 0, 0.0), np.where(N > 0, 0, N)),
    "bmm": (lambda x: ts.bmm(x, x.t()), N @ N.T),
    "mm": (lambda x: x.mm(x.t()), N @ N.T),
    "matmul": (lambda x: x.matmul(x.T), N @ N.T),
    "k by name": (lambda x: by_habit.topk(x, k=2, dim=-1)[0], -np.sort(-N, -1)[:, :2]),
    "classes": (lambda x: by_habit.one_hot((x * 0).to(ts.i64), num_classes=2), np.eye(2)[np.zeros((2, 3), int)]),
    "index": (lambda x: by_habit.take(x, ts.asarray([1, 0]), dim=1), N[:, [1, 0]]),
    "repeat": (lambda x: by_habit.repeat(x, 2, dim=0), N.repeat(2, 0)),
    "roll": (lambda x: x.roll(1, 0), np.roll(N, 1, 0)),
    "roll by dims": (lambda x: by_habit.roll(x, shifts=1, dims=1), np.roll(N, 1, 1)),
    "flip": (lambda x: x.flip(0), N[::-1]),
    "arithmetic": (lambda x: x.mul(x).add(1.0).sub(x).div(2.0).neg(), -(N * N + 1 - N) / 2),
    "comparing": (lambda x: x.gt(0.0), N > 0),
    "arccos": (lambda x: ts.arctan2(x, x + 9.0), np.arctan2(N, N + 9)),
    "power": (lambda x: ts.power(ts.absolute(x), 2.0), N**2),
    "flat": (lambda x: x.ravel(), N.ravel()),
    "input": (lambda x: by_habit.sum(input=x, dim=0), N.sum(0)),
    "sorting": (lambda x: x.sort(0, descending=True), -np.sort(-N, 0)),
}


@pytest.mark.parametrize("name", CASES)
def test_what_people_type_works(name: str) -> None:
    call, expected = CASES[name]
    for found in (call(X), ts.jit(call)(X)):
        np.testing.assert_allclose(np.asarray(found.numpy(), expected.dtype), expected, rtol=1e-5, atol=1e-6)


def test_makers_take_sizes_one_by_one() -> None:
    assert ts.zeros(2, 3).shape == ts.ones(2, 3).shape == ts.empty(2, 3).shape == ts.zeros((2, 3)).shape == (2, 3)
    assert ts.zeros(2, 3, ts.i32).dtype is ts.zeros((2, 3), ts.i32).dtype is ts.ones(2, 3, dtype=ts.i32).dtype is ts.i32
    assert ts.zeros(4).shape == ts.zeros(shape=4).shape == (4,)
    assert ts.randn(2, 3, seed=1).tolist() == ts.randn((2, 3), seed=1).tolist()
    assert ts.rand(2, 3).shape == (2, 3)

    def sized(x: Any) -> Any:
        return ts.zeros(x.shape[0], 4) + ts.ones(1, 4)

    assert ts.jit(sized)(X).tolist() == [[1.0] * 4] * 2
    with pytest.raises(ts.ShapeError, match="expected a shape"):
        ts.zeros(2, -3)


def test_tensors_are_made_under_two_names() -> None:
    assert ts.tensor is ts.array
    assert ts.as_tensor is ts.asarray
    assert ts.tensor([1.0, 2.0]).tolist() == [1.0, 2.0]


def test_attention_takes_torch_s_arguments() -> None:
    q, k, v = (ts.randn(1, 2, size, 4, seed=seed) for seed, size in enumerate((3, 5, 5)))
    expected = ts.scaled_dot_product_attention(q, k, v, mask=ts.asarray(np.tril(np.ones((3, 5), bool))))
    found = by_habit.scaled_dot_product_attention(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=True)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)
    same = ts.scaled_dot_product_attention(k, k, v, is_causal=True)
    np.testing.assert_array_equal(same.numpy(), ts.scaled_dot_product_attention(k, k, v, causal=True).numpy())


def test_aliases_are_operators_and_no_copies_of_them() -> None:
    for alias, known in ALIASES.items():
        assert getattr(ts, alias) is getattr(ts, known), alias
        assert alias not in OPERATORS
        assert alias not in dir(ts)
        if known in OPERATORS:
            assert getattr(ops, alias) is getattr(ops, known)
    assert "ATTRIBUTES" not in dir(ts)


def test_the_page_lists_aliases_once() -> None:
    table = PAGE.split("## Names from torch and NumPy")[1].split("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    by_operator: dict[str, list[str]] = {}
    for alias, known in ALIASES.items():
        by_operator.setdefault(known, []).append(alias)
    assert rows == [
        f"| `{known}` | {' '.join(f'`{one}`' for one in by_operator[known])} |" for known in sorted(by_operator)
    ]


MISSES = {
    "sofmax": "did you mean 'softmax'?",
    "cumulative_summ": "did you mean 'cumulative_sum'?",
    "gather": "write take_along_axis",
    "layer_norm": "write layernorm_safe",
    "vstack": "write concat",
    "scatter_add_": "x.at[indices]",
    "float": "float32",
}


@pytest.mark.parametrize("name", MISSES)
def test_an_unknown_name_says_what_was_meant(name: str) -> None:
    for namespace in (ts, ops):
        with pytest.raises(AttributeError) as caught:
            getattr(namespace, name)
        assert MISSES[name] in str(caught.value)
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
        assert not hasattr(namespace, name)


METHODS_THAT_ARE_MISSING = {
    "add_": "nothing works in place; write add",
    "numel": "x.size",
    "contiguous": "x.copy()",
    "where": "where(condition, x1, x2)",
    "repeat": "as NumPy does",
    "linear": "it is a function, ts.linear",
    "cat": "it is a function, ts.cat",
    "backward": "ts.grad(function)",
}


@pytest.mark.parametrize("name", METHODS_THAT_ARE_MISSING)
def test_an_unknown_method_says_what_was_meant(name: str) -> None:
    said: list[str] = []

    def in_a_trace(x: Any) -> Any:
        with pytest.raises(AttributeError) as caught:
            getattr(x, name)
        said.append(str(caught.value))
        return x

    ts.jit(in_a_trace)(X)
    with pytest.raises(AttributeError) as caught:
        getattr(X, name)
    assert all(METHODS_THAT_ARE_MISSING[name] in one for one in (*said, str(caught.value)))
    assert str(caught.value).startswith("'Tensor' object has no attribute")


ARGUMENTS: dict[str, tuple[Callable[[], object], str]] = {
    "misspelt": (lambda: by_habit.sum(X, axs=0), "did you mean axis=?"),
    "unknown": (lambda: by_habit.sum(X, out=X), "it takes sum("),
    "twice": (lambda: by_habit.sum(X, dim=0, axis=1), "'axis' is given twice"),
    "of a method": (lambda: by_habit.asarray(X).mean(axs=0), "did you mean axis=?"),
    "several axes": (lambda: by_habit.transpose(X, (1, 0)), "permute_dims"),
    "a gap": (lambda: by_habit.take(indices=X), "cannot be given by name here"),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_an_unknown_argument_says_what_was_meant(name: str) -> None:
    call, expected = ARGUMENTS[name]
    with pytest.raises(TesseraError) as caught:
        call()
    assert expected in str(caught.value)


def test_arguments_of_others_name_parameters_that_there_are() -> None:
    known = {one for name in OPERATORS if callable(found := operator_named(name)) for one in parameters_of(found)}
    assert {one for names in spellings.ARGUMENTS.values() for one in names} <= known


def parameters_of(function: Any) -> list[str]:
    return list(inspect.signature(function).parameters)


def test_hints_are_about_names_that_are_not_there() -> None:
    """At the top of the package, or as methods; what is there needs no hint."""
    there = {name for name in spellings.HINTS if hasattr(ts, name) and hasattr(X, name)}
    assert there == set()
    assert not spellings.HINTS.keys() & ALIASES.keys()


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_about_its_first_argument(name: str) -> None:
    first = next(iter(inspect.signature(operator_named(name)).parameters.values()))
    assert str(first.annotation) == "Array"
    assert name in dir(X)
    assert callable(getattr(X, name))


def test_axes_go_by_position() -> None:
    """But for those that other things come before, in torch and in NumPy, too."""
    named = {
        name
        for name in OPERATORS
        if callable(found := operator_named(name))
        for one in [inspect.signature(found).parameters.get("axis")]
        if one is not None and one.kind is one.KEYWORD_ONLY
    }
    others = {"diff", "nll_loss", "vector_norm"}
    assert named == {"batchnorm", "cross_entropy", "layernorm_safe", "rmsnorm_safe", *others}
