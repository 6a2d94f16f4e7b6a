"""Spellings from torch and NumPy: arguments that go by other names there, and errors that name the right word here.

Names that mean the same are in the registry (`ALIASES`). This file is for what a call has to say otherwise; it is read
when a name or an argument is not found.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ParamSpec, TypeVar

from tessera.errors import TesseraError
from tessera.lang.operator_registry import ALIASES, OPERATORS

P = ParamSpec("P")
R = TypeVar("R")

ARGUMENTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "a_max": ("max",),
        "a_min": ("min",),
        "attn_mask": ("mask",),
        "axes": ("axis",),
        "axis": ("axes",),
        "ddof": ("correction",),
        "dim": ("axis", "axes"),
        "dim0": ("first",),
        "dim1": ("second",),
        "dims": ("axes", "axis", "repetitions"),
        "dropout_p": ("dropout",),
        "index": ("indices",),
        "input": ("x", "x1"),
        "keepdim": ("keepdims",),
        "kernel_size": ("size",),
        "num_classes": ("classes",),
        "num_groups": ("groups",),
        "other": ("x2",),
        "reps": ("repetitions",),
        "shifts": ("shift",),
    }
)
"""Arguments by names of torch and NumPy, and the parameters that they may be: the first that there is."""

_UPDATES = "x.at[indices].set(values), .add, .multiply, .max and .min give an updated tensor"
HINTS: Mapping[str, str] = MappingProxyType(
    {
        "argwhere": "nonzero(x) gives one array of indices per axis",
        "backward": "ts.grad(function)(x)",
        "bfloat16": "x.to(ts.bf16)",
        "byte": "uint8, x.to(ts.u8)",
        "chunk": "split(x, parts, axis=0) takes a number of equal parts, or their sizes",
        "clone": "x.copy()",
        "contiguous": "x.copy() lies in C order",
        "detach": "ts.stop_gradient(x)",
        "dim": "x.ndim; sizes by name are tessera.shapes.dim",
        "dot": "matmul(x1, x2), or vecdot(x1, x2) along the last axis",
        "double": "float64, x.to(ts.f64)",
        "dstack": "concat(arrays, axis=2)",
        "expand": "broadcast_to(x, shape), with every size named",
        "expand_as": "broadcast_to(x, other.shape)",
        "fill_": "x[...] = value",
        "float": "float32, x.to(ts.f32)",
        "fmod": "remainder(x1, x2) has the sign of x2",
        "gather": "take_along_axis(x, indices, axis=...)",
        "grad": "ts.grad(function)(x)",
        "half": "float16, x.to(ts.f16)",
        "hstack": "concat(arrays, axis=1)",
        "index_add": _UPDATES,
        "index_copy": _UPDATES,
        "index_fill": _UPDATES,
        "index_put": _UPDATES,
        "index_select": "take(x, indices, axis=...)",
        "inner": "vecdot(x1, x2) along the last axis",
        "int": "int32, x.to(ts.i32)",
        "layer_norm": "layernorm_safe(x, weight, bias, axis=-1, eps=1e-5), which takes axes instead of a shape",
        "layernorm": "layernorm_safe(x, weight, bias, axis=-1, eps=1e-5)",
        "long": "int64, x.to(ts.i64)",
        "manual_seed": "randn, rand and randint take seed=; jitted functions draw by ts.random.key(seed)",
        "masked_select": "x[mask]",
        "narrow": "x[start : start + length], or take along another axis",
        "new_ones": "ones(shape, dtype=x.dtype, device=x.device)",
        "new_zeros": "zeros(shape, dtype=x.dtype, device=x.device)",
        "nll_loss": "cross_entropy(logits, labels) takes what log_softmax takes",
        "no_grad": "nothing around it: only ts.grad and its like take gradients, and ts.stop_gradient(x) ends them",
        "numel": "x.size",
        "put": _UPDATES,
        "put_along_axis": _UPDATES,
        "repeat": "repeat(x, counts, axis=...) as NumPy does, ops.tile(x, counts) as torch does",
        "requires_grad": "ts.grad(function)(x)",
        "rms_norm": "rmsnorm_safe(x, weight, axis=-1, eps=1e-6), which takes axes instead of a shape",
        "rmsnorm": "rmsnorm_safe(x, weight, axis=-1, eps=1e-6)",
        "scatter": _UPDATES,
        "scatter_add": _UPDATES,
        "scatter_reduce": _UPDATES,
        "short": "int16, x.to(ts.i16)",
        "split": "split(x, parts, axis=0) takes a number of equal parts, or all their sizes; torch's takes one size",
        "tile": "ops.tile(x, counts); tessera.tile is the language of kernels",
        "type": "x.to(dtype)",
        "type_as": "cast_like(x, other)",
        "vmap": "ts.vmap(function)(x)",
        "vstack": "concat(arrays, axis=0)",
        "where": "where(condition, x1, x2)",
    }
)
"""What to write for names that mean something slightly different, or take other arguments."""


class MissingAttributeError(AttributeError):
    """A name that is not there; it says what to write instead, or which name was probably meant, when it is shown."""

    def __init__(self, what: str, name: str, names: Callable[[], Iterable[str]]) -> None:
        # Without the object: Python would add a suggestion of its own.
        super().__init__(f"{what} has no attribute {name!r}", name=name)
        self.is_method = not what.startswith("module")
        self._names = names

    def __str__(self) -> str:
        said, name = str(self.args[0]), str(self.name)
        if name.startswith("_"):
            return said
        hint = HINTS.get(name) or HINTS.get(name.rstrip("_"))
        if hint is not None:
            return f"{said}; write {hint}"
        if self.is_method and ALIASES.get(name, name) in OPERATORS:
            return f"{said}: it is a function, ts.{name}"
        names = sorted({*self._names()} - {name})
        if (plain := name.rstrip("_")) != name and plain in names:
            return f"{said}: nothing works in place; write {plain}, which gives a new tensor"
        close = _close(name, names, 0.7)
        return f"{said}; did you mean {close[0]!r}?" if close else said

    def __reduce__(self) -> tuple[Any, ...]:
        return AttributeError, (str(self),)


def as_known(
    name: str, signature: inspect.Signature, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments under the names that parameters have here; those that go by position are put there."""
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = {one.name: one for one in signature.parameters.values() if one.kind not in kinds}
    found: dict[str, Any] = {}
    for given, value in kwargs.items():
        meant = (given, *ARGUMENTS.get(given, ()))
        known = next((one for one in meant if one in parameters), None)
        if known is None:
            close = _close(given, parameters, 0.6)
            guess = f"did you mean {close[0]}=? " if close else ""
            raise TesseraError(f"{name} has no argument {given!r}", hint=f"{guess}it takes {name}{signature}")
        if known in found:
            raise TesseraError(f"{name}: {known!r} is given twice", hint=f"it takes {name}{signature}")
        found[known] = value
    positional = [one.name for one in parameters.values() if one.kind is one.POSITIONAL_ONLY]
    moved = list(args)
    for one in positional[len(args) :]:
        if one not in found:
            break
        moved.append(found.pop(one))
    if left := [one for one in positional if one in found]:
        raise TesseraError(
            f"{name}: {', '.join(left)} cannot be given by name here", hint=f"it takes {name}{signature}"
        )
    return tuple(moved), found


def by_name(signature: inspect.Signature) -> frozenset[str]:
    """The parameters that take an argument by name."""
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return frozenset(one.name for one in signature.parameters.values() if one.kind in kinds)


def knowing(function: Callable[P, R]) -> Callable[P, R]:
    """A function that takes arguments by their names in torch and NumPy, too."""
    signature = inspect.signature(function)
    plain: Callable[..., R] = function
    named = by_name(signature)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if kwargs and not named.issuperset(kwargs):
            given, options = as_known(function.__name__, signature, args, kwargs)
            return plain(*given, **options)
        return function(*args, **kwargs)

    return call


def _close(name: str, names: Iterable[str], cutoff: float) -> list[str]:
    from difflib import get_close_matches  # read once a name is not found

    return get_close_matches(name, names, 1, cutoff)
