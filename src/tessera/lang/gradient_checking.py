"""`check_grad`: whether the derivatives of a function are those that differences show, in f64."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tessera.dtypes.types import f64
from tessera.errors import TesseraError, caller_span
from tessera.lang.derivatives import Function, Tree, jvp, vjp
from tessera.lang.jit import Jitted
from tessera.lang.tracing.values import is_array
from tessera.runtime.tensor.creation import asarray
from tessera.runtime.tensor.pytree import tree_flatten, tree_paths, tree_unflatten
from tessera.runtime.tensor.tensor import Tensor

_STEP = 1e-5
_KINK = 1e-3


@dataclass(frozen=True)
class GradientReport:
    """How far derivatives are from differences, relative to their size, in the direction that is worst."""

    forward: float
    """Of tangents."""
    backward: float
    """Of cotangents, from tangents."""
    second: float | None
    """Of the derivatives of cotangents."""


def check_grad(
    function: Function, *args: Tree, order: int = 1, directions: int = 2, tolerance: float = 1e-6, seed: int = 0
) -> GradientReport:
    """Raises where derivatives of a function are not what differences say; `order=2` looks at their derivatives, too.

    Floats among the arguments are widened to f64. Tangents are compared with central differences along random
    directions, and cotangents with tangents. Where the function has a kink between two of its points, that is said.
    """
    if order not in (1, 2):
        raise TesseraError(f"check_grad: order is 1 or 2, got {order!r}", span=caller_span(), hint="give one of these")
    leaves, structure = tree_flatten(args)
    floats = [index for index, leaf in enumerate(leaves) if _is_float(leaf)]
    if not floats:
        raise TesseraError(
            "check_grad: no argument is a float", span=caller_span(), hint="pass what derivatives are by"
        )
    values = [np.asarray(asarray(leaves[index]).cpu().astype(f64).numpy()) for index in floats]
    names = [_path(tree_paths(args)[index]) for index in floats]

    def of(*given: Tree) -> tuple[Tree, ...]:
        """The function's results that are floats."""
        all_ = list(leaves)
        for index, one in zip(floats, given, strict=True):
            all_[index] = one
        found = [leaf for leaf in tree_flatten(function(*tree_unflatten(structure, all_)))[0] if _is_result(leaf)]
        return tuple(found)

    def pulled(primals: Tree, cotangents: Tree) -> Tree:
        return vjp(of, *primals)[1](cotangents)

    def both(primals: Tree, tangents: Tree, cotangents: Tree) -> Tree:
        second = jvp(lambda *given: pulled(given, cotangents), primals, tangents)[1] if order == 2 else ()
        return jvp(of, primals, tangents)[1], pulled(primals, cotangents), second

    value, derived, back = (
        Jitted(of, name="check_grad"),
        Jitted(both, name="check_grad"),
        Jitted(pulled, name="check_grad"),
    )
    numbers = np.random.default_rng(seed)
    worst = [0.0, 0.0, 0.0]
    for _ in range(directions):
        along = [numbers.standard_normal(one.shape) for one in values]
        results = _arrays(value(*_tensors(values)))
        weights = tuple(numbers.standard_normal(one.shape) for one in results)

        def at(step: float, along: Sequence[_Array] = along) -> tuple[Tensor, ...]:
            return _tensors([one + step * direction for one, direction in zip(values, along, strict=True)])

        tangents, cotangents, second = derived(at(0.0), _tensors(along), _tensors(weights))
        ahead, behind = _arrays(value(*at(_STEP))), _arrays(value(*at(-_STEP)))
        slopes = [(one - other) / (2 * _STEP) for one, other in zip(ahead, behind, strict=True)]
        error = _apart(_arrays(tangents), slopes)
        if error > tolerance:
            here = [(one - other) / _STEP for one, other in zip(ahead, results, strict=True)]
            back_ = [(one - other) / _STEP for one, other in zip(results, behind, strict=True)]
            raise _wrong("a tangent is not the slope", error, names, _kink(here, back_))
        worst[0] = max(worst[0], error)
        left = sum(float(np.sum(a * b)) for a, b in zip(weights, _arrays(tangents), strict=True))
        parts = [float(np.sum(a * b)) for a, b in zip(_arrays(cotangents), along, strict=True)]
        error = abs(left - sum(parts)) / max(1.0, abs(left))
        if error > tolerance:
            raise _wrong("cotangents do not belong to tangents", error, names, "")
        worst[1] = max(worst[1], error)
        if order == 2:
            ahead, behind = (_arrays(back(at(step), _tensors(weights))) for step in (_STEP, -_STEP))
            slopes = [(one - other) / (2 * _STEP) for one, other in zip(ahead, behind, strict=True)]
            error = _apart(_arrays(second), slopes)
            if error > 10 * tolerance:
                raise _wrong("a second derivative is not the slope of the first", error, names, "")
            worst[2] = max(worst[2], error)
    return GradientReport(worst[0], worst[1], worst[2] if order == 2 else None)


_Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def _is_float(leaf: Tree) -> bool:
    return isinstance(leaf, float) or (is_array(leaf) and asarray(leaf).dtype.is_float)


def _is_result(leaf: Tree) -> bool:
    """Whether a result has derivatives."""
    return hasattr(leaf, "dtype") and leaf.dtype.is_float


def _tensors(values: Sequence[_Array]) -> tuple[Tensor, ...]:
    return tuple(asarray(np.array(one)) for one in values)


def _arrays(values: Sequence[Tensor]) -> list[_Array]:
    return [np.asarray(one.cpu().numpy(), np.float64) for one in values]


def _apart(found: Sequence[_Array], expected: Sequence[_Array]) -> float:
    """The largest difference, relative to the size of all."""
    scale = max([1.0, *[float(np.max(np.abs(one), initial=0.0)) for one in expected]])
    return (
        max([0.0, *[float(np.max(np.abs(a - b), initial=0.0)) for a, b in zip(found, expected, strict=True)]]) / scale
    )


def _kink(ahead: Sequence[_Array], behind: Sequence[_Array]) -> str:
    """What is said where the slopes of both sides differ."""
    apart = _apart(ahead, behind)
    return f"; the slopes ahead and behind differ by {apart:.2g}: there is a kink" if apart > _KINK else ""


def _path(path: Sequence[object]) -> str:
    return f"argument {path[0]}" + "".join(f"[{one!r}]" for one in path[1:])


def _wrong(what: str, error: float, names: Sequence[str], kink: str) -> TesseraError:
    return TesseraError(
        f"check_grad: {what}: they differ by {error:.2g} of their size{kink}",
        shapes=[f"by {name}" for name in names],
        span=caller_span(),
        hint="a rule of one's own may be wrong, or the function is not smooth here: try other arguments",
    )
