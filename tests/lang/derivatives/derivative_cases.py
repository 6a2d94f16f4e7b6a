"""Functions whose derivatives are checked: rows of the elementwise table, and one or more for each op of graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
from gradient_checks import Array, Case, binary, ternary, unary

import tessera as ts


def positive(normal: Array) -> Array:
    return np.abs(normal) + 0.5


def within_one(normal: Array) -> Array:
    return np.tanh(normal) * 0.8


def apart(normal: Array) -> Array:
    """Numbers no two of which are close to each other."""
    order = np.argsort(np.argsort(normal.ravel())).reshape(normal.shape)
    return (order - normal.size / 2 + 0.25 + 0.2 * np.tanh(normal)) * 0.37


S = (3, 4)
ELEMENTWISE = [
    Case("neg", unary(lambda x: -x), (S,)),
    Case("abs", unary(ts.abs), (S,), apart),
    Case("exp", unary(ts.exp), (S,)),
    Case("exp2", unary(ts.exp2), (S,)),
    Case("expm1", unary(ts.expm1), (S,)),
    Case("log", unary(ts.log), (S,), positive),
    Case("log2", unary(ts.log2), (S,), positive),
    Case("log1p", unary(ts.log1p), (S,), positive),
    Case("sqrt", unary(ts.sqrt), (S,), positive),
    Case("rsqrt", unary(ts.rsqrt), (S,), positive),
    Case("reciprocal", unary(lambda x: 1.0 / x), (S,), positive),
    Case("sin", unary(ts.sin), (S,)),
    Case("cos", unary(ts.cos), (S,)),
    Case("tan", unary(ts.tan), (S,), within_one),
    Case("tanh", unary(ts.tanh), (S,)),
    Case("erf", unary(ts.erf), (S,)),
    Case("sigmoid", unary(ts.sigmoid), (S,)),
    Case("add", binary(lambda x, y: x + y), (S, S)),
    Case("sub", binary(lambda x, y: x - y), (S, (4,))),
    Case("mul", binary(lambda x, y: x * y), (S, (3, 1))),
    Case("div", binary(lambda x, y: x / y), (S, S), positive),
    Case("rem", binary(lambda x, y: x % y), (S, S), positive),
    Case("pow", binary(lambda x, y: x**y), (S, S), positive),
    Case("min", binary(ts.minimum), (S, S), apart),
    Case("max", binary(ts.maximum), (S, S), apart),
    Case("atan2", binary(ts.atan2), (S, S), positive),
    Case("copysign", binary(ts.copysign), (S, S), apart),
    Case("select", binary(lambda x, y: ts.where(x > y, x * y, ts.sin(x))), (S, S), apart),
    Case("cast", unary(lambda x: ts.astype(ts.astype(x, ts.f64), ts.f64) * x), (S,)),
    Case("gelu", unary(ts.gelu), (S,)),
    Case("silu", unary(ts.silu), (S,)),
    Case("constant results", unary(lambda x: ts.floor(x) + ts.sign(x) * x), (S,), apart),
]

ARRANGEMENTS = [
    Case("broadcast", unary(lambda x: ts.broadcast_to(x, (2, 3, 4)) * ts.arange(4.0, dtype=ts.f64)), ((3, 1),)),
    Case("reshape", unary(lambda x: ts.sin(ts.reshape(x, (2, 6)))), (S,)),
    Case("transpose", unary(lambda x: ts.permute_dims(x, (2, 0, 1)) ** 2), ((2, 3, 4),)),
    Case("slice", unary(lambda x: x[1:3, :2] ** 2), ((4, 5),)),
    Case("slice with steps", unary(lambda x: x[1::2, ::3] ** 2), ((5, 7),)),
    Case("slice with steps beyond", unary(lambda x: x[2:9:4] ** 2), ((11,),)),
    Case("slice backwards", unary(lambda x: x[::-1, 4:0:-2] ** 2), ((3, 6),)),
    Case("slice from the end", unary(lambda x: x[-3:-1] ** 2), ((5,),)),
    Case("empty slice", unary(lambda x: ts.sum(x[2:2]) + x), ((5,),)),
    Case("concatenate", binary(lambda x, y: ts.concat([x, y, x * y[:, :2]], axis=1) ** 2), ((3, 2), (3, 4))),
    Case("stack", binary(lambda x, y: ts.stack([x, y], axis=1) ** 3), (S, S)),
    Case("pad", unary(lambda x: ts.pad(x, ((1, 2), (0, 1))) ** 2), (S,)),
    Case("flip", unary(lambda x: ts.flip(x, axis=0) * x), (S,)),
    Case("roll", unary(lambda x: ts.roll(x, 2, axis=1) * x), (S,)),
]

REDUCTIONS = [
    Case("sum", unary(lambda x: ts.sum(x**2, axis=0)), (S,)),
    Case("sum of all", unary(lambda x: ts.sum(ts.exp(x))), (S,)),
    Case("mean", unary(lambda x: ts.mean(x * x, axis=1, keepdims=True)), (S,)),
    Case("reduce max", unary(lambda x: ts.max(x * x * x, axis=1)), (S,), apart),
    Case("reduce min", unary(lambda x: ts.min(x, axis=(0, 2)) ** 2), ((2, 3, 2),), apart),
    Case("prod", unary(lambda x: ts.prod(x, axis=1)), (S,)),
    Case("prod of several", unary(lambda x: ts.prod(x, axis=(0, 2))), ((2, 3, 2),)),
    Case("prod of zeros", unary(lambda x: ts.prod(x * ts.asarray([1.0, 0.0, 1.0]).astype(ts.f64), axis=0)), ((3,),)),
    Case("var", unary(lambda x: ts.var(x, axis=0)), (S,)),
    Case("softmax", unary(lambda x: ts.softmax(x, axis=1)), (S,)),
    Case("logsumexp", unary(lambda x: ts.logsumexp_safe(x, axis=-1)), (S,)),
    Case("layernorm", ternary(ts.layernorm_safe), (S, (4,), (4,))),
    Case("rmsnorm", binary(ts.rmsnorm_safe), (S, (4,))),
    Case("cumulative sum", unary(lambda x: ts.cumulative_sum(x * x, axis=1)), (S,)),
    Case("cumulative product", unary(lambda x: ts.cumulative_prod(x, axis=1)), (S,)),
]

PRODUCTS = [
    Case("matmul", binary(lambda x, y: x @ y), (S, (4, 2))),
    Case("matmul of many and one", binary(lambda x, y: x @ y), ((2, 3, 4), (4, 2))),
    Case("matmul of one and many", binary(lambda x, y: x @ y), ((3, 4), (2, 4, 2))),
    Case("matmul of broadcast", binary(lambda x, y: x @ y), ((2, 1, 3, 4), (3, 4, 2))),
    Case("matmul with itself", unary(lambda x: x @ x), ((3, 3),)),
    Case("vectors", binary(lambda x, y: x @ y), ((4,), (4,))),
    Case("einsum", binary(lambda x, y: ts.einsum("bij,bjk->bik", x, y)), ((2, 3, 4), (2, 4, 2))),
]


def _indices(*values: int) -> Any:
    return ts.asarray(np.array(values, np.int64))


def _holed(y: Any) -> Any:
    return y * ts.asarray(np.array([[0.0, 1.0], [1.0, 1.0], [1.0, 0.0]]))


def _part(x: Any, start: Any) -> Any:
    return x[start : start + 2]


PLACES = [
    Case("take", unary(lambda x: ts.take(x, _indices(2, 0, 2), axis=1) ** 2), (S,)),
    Case("take along", unary(lambda x: ts.take_along_axis(x, _indices(1, 0, 1).reshape(3, 1), axis=1) ** 2), (S,)),
    Case("set", binary(lambda x, y: x.at[_indices(0, 2, 0)].set(y) ** 2), ((4, 2), (3, 2))),
    Case("scatter add", binary(lambda x, y: x.at[_indices(0, 2, 0)].add(y) ** 2), ((4, 2), (3, 2))),
    Case("scatter max", binary(lambda x, y: x.at[_indices(0, 2, 0)].max(y) ** 2), ((4, 2), (3, 2)), apart),
    Case("scatter min", binary(lambda x, y: x.at[_indices(0, 2, 0)].min(y) ** 2), ((4, 2), (3, 2)), apart),
    Case("two axes", unary(lambda x: x[_indices(0, 2, 0), _indices(1, 1, 3)] ** 2), (S,)),
    Case("set in two axes", binary(lambda x, y: x.at[_indices(0, 2, 0), _indices(1, 1, 1)].set(y) ** 2), (S, (3,))),
    Case("multiply", binary(lambda x, y: x.at[_indices(0, 2, 0)].multiply(y) ** 2), ((4, 2), (3, 2))),
    Case("multiply by zeros", binary(lambda x, y: x.at[_indices(0, 2, 0)].multiply(_holed(y))), ((4, 2), (3, 2))),
    Case("dynamic slice", unary(lambda x: _part(x, _indices(1)[0]) ** 2), ((5, 2),)),
    Case("sort", unary(lambda x: ts.sort(x, axis=1) * ts.arange(4.0, dtype=ts.f64)), (S,), apart),
    Case("embedding", unary(lambda x: ts.embedding(_indices(1, 1, 0), x) ** 2), (S,)),
]


def _loop(x: Any, w: Any) -> Any:
    def step(carry: Any, row: Any) -> tuple[Any, Any]:
        after = ts.tanh(carry * w + row)
        return after, ts.sin(after) * row

    last, rows = ts.scan(step, x[0] * 0.5, x)
    return ts.sum(last) + ts.sum(rows * rows, axis=1)


def _backwards(x: Any, w: Any) -> Any:
    def step(carry: Any, row: Any) -> tuple[Any, Any]:
        return carry * row + w, carry

    last, rows = ts.scan(step, w, x, reverse=True)
    return last * 2.0 + ts.sum(rows, axis=0)


def _nested(x: Any) -> Any:
    def inner(carry: Any, element: Any) -> tuple[Any, Any]:
        return carry * ts.cos(element), carry

    def outer(carry: Any, row: Any) -> tuple[Any, Any]:
        last, kept = ts.scan(inner, carry, row)
        return last + 0.1, ts.sum(kept)

    last, sums = ts.scan(outer, x[0, 0], x)
    return last + ts.sum(sums)


def _branches(x: Any) -> Any:
    return ts.cond(ts.sum(x) > 100.0, lambda: ts.exp(x), lambda: ts.sin(x) * x)


def _branch_in_loop(x: Any) -> Any:
    def step(carry: Any, row: Any) -> tuple[Any, Any]:
        after = ts.cond(ts.max(row) > 0.3, lambda: ts.sin(carry) * row, lambda: carry + row * row)
        return after, ts.sum(after)

    last, rows = ts.scan(step, x[0], x)
    return ts.sum(last) + rows


CONTROL = [
    Case("scan", binary(_loop), ((5, 3), (3,))),
    Case("scan backwards", binary(_backwards), ((4, 3), (3,))),
    Case("scan in scan", unary(_nested), ((3, 2),)),
    Case("cond", unary(_branches), ((3,),)),
    Case("cond in scan", unary(_branch_in_loop), ((4, 2),), apart),
    Case("fori_loop", unary(lambda x: ts.fori_loop(0, 3, lambda i, c: ts.sin(c) + x, x)), ((3,),)),
]

EMPTY = [
    Case("no rows", binary(lambda x, y: x @ y), ((0, 4), (4, 2))),
    Case("no depth", binary(lambda x, y: ts.sin(x) @ y), ((3, 0), (0, 2))),
    Case("nothing reduced", unary(lambda x: ts.sum(x * x, axis=0)), ((0, 3),)),
    Case("nothing placed", unary(lambda x: ts.concat([x, x * 2.0], axis=0) ** 2), ((0, 2),)),
]

CASES = [*ELEMENTWISE, *ARRANGEMENTS, *REDUCTIONS, *PRODUCTS, *PLACES, *CONTROL, *EMPTY]
