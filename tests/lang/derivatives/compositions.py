"""Random functions of a vector under random compositions of transforms, for Tessera and for JAX alike.

A function is a tree: leaves are chains of smooth operators, other nodes are transforms of what they stand around. Each
takes a vector and gives one of the same length, so that all nest in all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
from gradient_checks import binary, ternary, unary

import tessera as ts

Vector = Any
Function = Callable[[Vector], Vector]
LENGTH = 3

TRANSFORMS = ("grad", "vjp", "jvp", "vmap", "jit", "scan", "cond", "checkpoint", "custom_jvp", "custom_vjp", "hessian")


@dataclass(frozen=True)
class Node:
    """A transform of other nodes, or a chain of operators; `seed` draws its constants."""

    kind: str
    parts: tuple[Node, ...]
    seed: int

    @property
    def depth(self) -> int:
        return (self.kind != "chain") + max((part.depth for part in self.parts), default=0)

    def kinds(self) -> list[str]:
        return [self.kind, *[kind for part in self.parts for kind in part.kinds()]]


def pairs(node: Node) -> list[tuple[str, str]]:
    """The transforms that stand directly around each other."""
    found = [pair for part in node.parts for pair in pairs(part)]
    return [*found, *[(node.kind, part.kind) for part in node.parts if part.kind != "chain"]]


def draw(numbers: np.random.Generator, depth: int, first: tuple[str, ...] = ()) -> Node:
    """A composition that is nested so deep along its first parts, which begin with these transforms."""
    seed = int(numbers.integers(2**31))
    if depth == 0:
        return Node("chain", (), seed)
    kind = first[0] if first else TRANSFORMS[int(numbers.integers(len(TRANSFORMS)))]
    count = 2 if kind == "cond" else 1
    inner = draw(numbers, depth - 1, first[1:])
    others = tuple(draw(numbers, int(numbers.integers(min(depth, 2)))) for _ in range(count - 1))
    return Node(kind, (inner, *others), seed)


def composition(seed: int) -> Node:
    """Four transforms around each other, so that `len(TRANSFORMS) ** 2` of these have each pair in each place."""
    rest, b = divmod(seed, len(TRANSFORMS))
    cycle, a = divmod(rest, len(TRANSFORMS))
    first = [TRANSFORMS[index % len(TRANSFORMS)] for index in (a, b, a + b + cycle, a + 2 * b + 3 * cycle)]
    return draw(np.random.default_rng(seed), len(first), tuple(first))


# Operators of chains, over the names of a backend.


def _chain(b: Any, seed: int) -> Function:
    numbers = np.random.default_rng(seed)
    steps = [(int(numbers.integers(len(_STEPS))), numbers.standard_normal((LENGTH, LENGTH))) for _ in range(3)]

    def function(x: Vector) -> Vector:
        for step, constants in steps:
            x = _STEPS[step](b, x, constants)
        return x

    return function


def _looked_up(b: Any, x: Vector, c: Any) -> Vector:
    order = np.argsort(c[0])
    return b.take(x, b.integers(order)) * c[1]


def _placed(b: Any, x: Vector, c: Any) -> Vector:
    return b.add_at(x * c[0], b.integers(np.argsort(c[1])), b.sin(x))


_STEPS: tuple[Callable[[Any, Vector, Any], Vector], ...] = (
    lambda b, x, c: b.sin(x) * c[0],
    lambda b, x, c: b.tanh(b.array(c) @ x),
    lambda b, x, c: x * x * 0.3 + c[1],
    lambda b, x, c: b.exp(-x * x) + c[0] * x,
    lambda b, x, c: b.sum(x * c[0]) * b.cos(x),
    lambda b, x, c: b.softmax(x) * c[2] + x,
    lambda b, x, c: b.concat([x[1:], x[:1]]) * c[0],
    lambda b, x, c: b.cumsum(x * c[0]) * 0.5,
    lambda b, x, c: b.reshape(b.outer(x, b.sin(x)), (LENGTH * LENGTH,))[: 3 * LENGTH : 3] + c[0],
    lambda b, x, c: b.log1p(x * x) + c[2],
    lambda b, x, c: b.stop(x) * c[0] + x,
    _looked_up,
    _placed,
)


def built(b: Any, node: Node) -> Function:
    """A node's function, in the words of a backend."""
    if node.kind == "chain":
        return _chain(b, node.seed)
    functions = [built(b, part) for part in node.parts]
    constants = np.random.default_rng(node.seed).standard_normal((LENGTH, LENGTH))
    return _BUILD[node.kind](b, functions, constants)


def _grad(b: Any, fs: list[Function], c: Any) -> Function:
    return b.grad(unary(lambda x: b.sum(fs[0](x) * c[0])))


def _vjp(b: Any, fs: list[Function], c: Any) -> Function:
    return lambda x: b.vjp(fs[0], x)[1](b.array(c[0]) * b.cos(x))[0]


def _jvp(b: Any, fs: list[Function], c: Any) -> Function:
    return lambda x: b.jvp(fs[0], (x,), (b.array(c[0]) * b.sin(x),))[1]


def _vmap(b: Any, fs: list[Function], c: Any) -> Function:
    return lambda x: b.sum(b.vmap(fs[0])(b.array(c[:2]) * x), 0)


def _jit(b: Any, fs: list[Function], c: Any) -> Function:
    return b.jit(fs[0])


def _scan(b: Any, fs: list[Function], c: Any) -> Function:
    def function(x: Vector) -> Vector:
        last, rows = b.scan(binary(lambda carry, row: (b.tanh(fs[0](carry) + row * x), carry * row)), x, b.array(c))
        return last + b.sum(rows, 0)

    return function


def _cond(b: Any, fs: list[Function], c: Any) -> Function:
    # The bound is far from where two programs could differ by rounding.
    return lambda x: b.cond(b.sum(b.tanh(b.stop(x))) > 100.0 * c[0, 0], fs[0], fs[1], x)


def _checkpoint(b: Any, fs: list[Function], c: Any) -> Function:
    return b.checkpoint(fs[0])


def _custom_jvp(b: Any, fs: list[Function], c: Any) -> Function:
    return b.custom_jvp(fs[0], binary(lambda x, t: (fs[0](x), t * b.cos(x) * c[0])))


def _custom_vjp(b: Any, fs: list[Function], c: Any) -> Function:
    return b.custom_vjp(fs[0], unary(lambda x: (fs[0](x), x)), binary(lambda x, g: (g * b.sin(x) * c[0],)))


def _hessian(b: Any, fs: list[Function], c: Any) -> Function:
    return lambda x: b.hessian(unary(lambda y: b.sum(fs[0](y))))(x) @ c[0]


_BUILD: dict[str, Callable[[Any, list[Function], Any], Function]] = {
    "grad": _grad,
    "vjp": _vjp,
    "jvp": _jvp,
    "vmap": _vmap,
    "jit": _jit,
    "scan": _scan,
    "cond": _cond,
    "checkpoint": _checkpoint,
    "custom_jvp": _custom_jvp,
    "custom_vjp": _custom_vjp,
    "hessian": _hessian,
}


def tessera() -> Any:
    def custom_jvp(function: Function, rule: Callable[[Vector, Vector], Any]) -> Function:
        made = ts.custom_jvp(function)
        made.defjvp(binary(lambda primals, tangents: rule(primals[0], tangents[0])))
        return made

    def custom_vjp(function: Function, forward: Callable[[Vector], Any], backward: Any) -> Function:
        made = ts.custom_vjp(function)
        made.defvjp(forward, backward)
        return made

    def summed(x: Vector, axis: int | None = None) -> Vector:
        return ts.sum(x, axis=axis)

    return SimpleNamespace(
        **{name: getattr(ts, name) for name in ("sin", "cos", "tanh", "exp", "log1p", "concat", "reshape")},
        **{name: getattr(ts, name) for name in ("grad", "vjp", "jvp", "vmap", "jit", "scan", "cond", "hessian")},
        checkpoint=ts.checkpoint,
        custom_jvp=custom_jvp,
        custom_vjp=custom_vjp,
        sum=summed,
        array=ts.asarray,
        integers=unary(lambda order: ts.asarray(np.asarray(order, np.int64))),
        take=binary(lambda x, order: ts.take(x, order, axis=0)),
        add_at=ternary(lambda x, order, y: x.at[order].add(y)),
        outer=binary(lambda x, y: x[:, None] * y[None, :]),
        softmax=unary(lambda x: ts.softmax(x, axis=-1)),
        cumsum=unary(lambda x: ts.cumulative_sum(x, axis=0)),
        stop=ts.stop_gradient,
    )


def jax() -> Any:
    j: Any = import_module("jax")
    jnp: Any = j.numpy

    def custom_jvp(function: Function, rule: Callable[[Vector, Vector], Any]) -> Function:
        made = j.custom_jvp(function)
        made.defjvp(binary(lambda primals, tangents: rule(primals[0], tangents[0])))
        return made

    def custom_vjp(function: Function, forward: Callable[[Vector], Any], backward: Any) -> Function:
        made = j.custom_vjp(function)
        made.defvjp(forward, backward)
        return made

    return SimpleNamespace(
        **{
            name: getattr(jnp, name)
            for name in ("sin", "cos", "tanh", "exp", "log1p", "sum", "outer", "cumsum", "take")
        },
        **{name: getattr(j, name) for name in ("grad", "vjp", "jvp", "vmap", "jit", "hessian", "checkpoint")},
        scan=j.lax.scan,
        cond=j.lax.cond,
        custom_jvp=custom_jvp,
        custom_vjp=custom_vjp,
        array=jnp.asarray,
        integers=jnp.asarray,
        add_at=ternary(lambda x, order, y: x.at[order].add(y)),
        concat=jnp.concatenate,
        reshape=jnp.reshape,
        softmax=j.nn.softmax,
        stop=j.lax.stop_gradient,
    )
