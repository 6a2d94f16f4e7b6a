"""Functions over tensors whose ops do not all become the kernels that one might expect, each for another reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import tessera as ts
from tessera import bf16, i32


@dataclass(frozen=True)
class RefusedGraph:
    """A function, and its arguments; for few rows it is compiled for a GPU, which joins such kernels to fewer."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    on_gpu: bool = False


def attention_with_weights(q: Any, k: Any, v: Any) -> Any:
    weights = ts.softmax(q @ k.mT)
    return weights @ v, weights


def attention(q: Any, k: Any, v: Any) -> Any:
    return ts.softmax(q @ k.mT) @ v


def sorted_attention(q: Any, k: Any, v: Any) -> Any:
    scores = q @ k.mT
    return ts.exp(scores - ts.cumulative_sum(scores, axis=-1)) @ v


def normed(x: Any, w: Any) -> Any:
    mean = x.mean(axis=-1, keepdims=True)
    return (x - mean) @ w


def softmax_of_product(x: Any, w: Any) -> Any:
    return ts.softmax(x @ w)


def both_ways(x: Any) -> Any:
    scores = x @ x.mT
    return scores + scores.mT


def by_heads(x: Any, w: Any, bias: Any) -> Any:
    made = x @ w
    heads = made.reshape((*made.shape[:-1], 4, 8))
    return heads + bias


def four_results(x: Any, w: Any) -> Any:
    made = x @ w
    first = made * 2.0
    second = first + 1.0
    third = ts.exp(second)
    return made, first, second, third


def running_sum(x: Any) -> Any:
    return ts.cumulative_sum(ts.exp(x), axis=0) * 2.0


def many_arrays(*arrays: Any) -> Any:
    total = ts.exp(arrays[0])
    for one in arrays[1:]:
        total = total + ts.exp(one)
    return total


def many_steps(x: Any) -> Any:
    for _ in range(100):
        x = ts.sin(x)
    return x


def looked_up(table: Any, which: Any) -> Any:
    return ts.take(ts.exp(table), which, axis=0)


def two_reductions(x: Any) -> Any:
    return x.sum(axis=0).max()


def scaled_by_all(x: Any) -> Any:
    weights = ts.exp(x)
    return weights / weights.sum()


def few_long_rows(x: Any, w: Any) -> Any:
    return (x * ts.rsqrt((x * x).mean(axis=-1, keepdims=True))) @ w


def cast_operand(x: Any, w: Any) -> Any:
    return x @ w.astype(ts.f32)


def product(x: Any, w: Any) -> Any:
    return x @ w


def activated(x: Any, w: Any) -> Any:
    return ts.relu(x @ w) + 1.0


def arranged(x: Any, w: Any) -> Any:
    return (x @ w).mT


def softmax(x: Any) -> Any:
    return ts.softmax(x * 2.0)


def sum_of_all(x: Any) -> Any:
    return ts.exp(x).sum()


def raised(x: Any) -> Any:
    return ts.exp(x)


def side_by_side(x: Any) -> Any:
    return ts.exp(x), ts.sin(x)


def masked_queries(q: Any, k: Any, mask: Any) -> Any:
    return ts.flash_attention(q, k, k, mask=mask)


def logarithms_of_queries(q: Any, k: Any, mask: Any) -> Any:
    return ts.flash_attention(q, k, k, return_lse=True)


X, W, ROWS = ts.ones((64, 32)), ts.ones((32, 48)), ts.ones((2, 64, 32))
Q = (ts.ones((2, 64, 32)),) * 3

QUERIES = ts.ones((2, 8, 3, 16)), ts.ones((2, 2, 640, 16)), ts.ones((3, 640), ts.bool_)
CASES: Mapping[str, RefusedGraph] = {
    "attention whose weights are a result": RefusedGraph(attention_with_weights, Q),
    "attention with wide heads": RefusedGraph(attention, (ts.ones((64, 640)),) * 3),
    "attention with something else between its matmuls": RefusedGraph(sorted_attention, Q),
    "an operand that is computed": RefusedGraph(normed, (X, W)),
    "an operand that is cast": RefusedGraph(cast_operand, (X, ts.ones((32, 48), bf16))),
    "softmax of a product": RefusedGraph(softmax_of_product, (X, W)),
    "a product and its transpose": RefusedGraph(both_ways, (X,)),
    "heads behind a product": RefusedGraph(by_heads, (ROWS, ts.ones((32, 32)), ts.ones((4, 8)))),
    "a product with four results": RefusedGraph(four_results, (X, W)),
    "a running sum": RefusedGraph(running_sum, (X,)),
    "many arrays": RefusedGraph(many_arrays, tuple(ts.ones((3, 4)) for _ in range(20))),
    "many steps": RefusedGraph(many_steps, (X,)),
    "rows of a computed table": RefusedGraph(looked_up, (X, ts.ones((3,), i32))),
    "reductions of other axes": RefusedGraph(two_reductions, (X,)),
    "what is divided by the sum of all": RefusedGraph(scaled_by_all, (X,)),
    "queries with a mask, whose heads share keys": RefusedGraph(masked_queries, QUERIES, on_gpu=True),
    "queries with logarithms, whose heads share keys": RefusedGraph(logarithms_of_queries, QUERIES, on_gpu=True),
    "few rows that are long": RefusedGraph(few_long_rows, (ts.ones((1, 8192)), ts.ones((8192, 16))), on_gpu=True),
    "few rows and large weights": RefusedGraph(few_long_rows, (ts.ones((1, 4096)), ts.ones((4096, 8192))), on_gpu=True),
}
FUSED: Mapping[str, RefusedGraph] = {
    "attention": RefusedGraph(attention, Q),
    "a product and what follows": RefusedGraph(activated, (X, W)),
    "softmax": RefusedGraph(softmax, (X,)),
    "the sum of all": RefusedGraph(sum_of_all, (X,)),
    "one op": RefusedGraph(raised, (X,)),
    "a product alone": RefusedGraph(product, (X, W)),
    "two functions of one array": RefusedGraph(side_by_side, (X,)),
    "an arrangement of a product": RefusedGraph(arranged, (X, W)),
}
"""Functions of which nothing is refused."""
