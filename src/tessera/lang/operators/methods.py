"""Operators as methods and properties of tensors and traced values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from tessera.errors import ShapeError, TesseraError
from tessera.lang import operator_registry, operators
from tessera.lang.operator_registry import ALIASES, ARRAY_API_VERSION, operator_named
from tessera.lang.operators.data_types import astype, cast
from tessera.lang.operators.elementwise import positive, row
from tessera.lang.operators.indexing import get_item
from tessera.lang.operators.linear_algebra import matmul
from tessera.lang.operators.manipulation import broadcast_to, matrix_transpose, permute_dims, reshape, squeeze
from tessera.lang.operators.updates import At, stored
from tessera.lang.spellings import knowing
from tessera.lang.tracing.values import Traced, current_or_none
from tessera.tile.calls.settings import settings


def _several(given: tuple[Any, ...]) -> tuple[Any, ...]:
    """The items of `f(2, 3)` or `f((2, 3))`."""
    first: Any = given[0] if len(given) == 1 else given
    return tuple(first) if isinstance(first, tuple | list) else given  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def _permuted(x: Any, *axes: Any) -> Any:
    return permute_dims(x, _several(axes))


def _reshaped(x: Any, *shape: Any, copy: Any = None) -> Any:
    return reshape(x, _several(shape), copy=copy)


def _broadcast(x: Any, *shape: Any) -> Any:
    return broadcast_to(x, _several(shape))


def _squeezed(x: Any, axis: Any = None) -> Any:
    ones_there = tuple(at for at, size in enumerate(x.shape) if size == 1) if axis is None else axis
    return squeeze(x, ones_there)


def _cast_to(x: Any, dtype: Any) -> Any:
    return astype(x, dtype, copy=False)


def _namespace(x: Any, /, *, api_version: str | None = None) -> Any:
    """The module with the functions of the standard."""
    if api_version not in (None, "2021.12", "2022.12", ARRAY_API_VERSION):
        raise TesseraError(
            f"revision {api_version} of the Array API is not implemented", hint=f"ask for {ARRAY_API_VERSION}"
        )
    return operators


def _transposed(x: Any) -> Any:
    if x.ndim != 2:
        raise ShapeError(f".T is for matrices, this tensor has {x.ndim} axes", hint="use .mT, or permute")
    return matrix_transpose(x)


def _has_machine_code() -> Any:
    """Whether operators of the host are compiled here and now: not by the interpreter, and not part of a trace."""
    return current_or_none() is None and settings() is not None


def _viewed(x: Any, *shape: Any) -> Any:
    return reshape(x, _several(shape)) if isinstance(x, Traced) else x.reshape(*shape, copy=False)


def _exchanged(x: Any) -> Any:
    return x.T if x.ndim > 1 else x


def _of_other_name(name: str, x: Any, /, *args: Any, **kwargs: Any) -> Any:
    """The method of another name, for an alias: a tensor's own where it has one."""
    method = getattr(x, name)
    return method(*args, **kwargs) if not kwargs else knowing(method)(*args, **kwargs)


class _Methods(dict[str, Callable[..., Any]]):
    """Functions by the names of methods. Operators come in, and their modules load, when they are first asked for."""

    def __missing__(self, name: str) -> Callable[..., Any]:
        known = ALIASES.get(name)
        if known is not None and (known in self or known in operator_registry.METHODS):
            return partial(_of_other_name, known)
        if name not in operator_registry.METHODS:
            raise KeyError(name)
        found = self[name] = operator_named(name)
        return found


METHODS: Mapping[str, Callable[..., Any]] = _Methods(
    {
        "__array_namespace__": _namespace,
        "__cast__": cast,
        "__elementwise__": row,
        "__getitem__": get_item,
        "__has_machine_code__": _has_machine_code,
        "__matmul__": matmul,
        "__setitem__": stored,
        "broadcast_to": _broadcast,
        "copy": positive,
        "permute": _permuted,
        "reshape": _reshaped,
        "squeeze": _squeezed,
        "t": _exchanged,
        "to": _cast_to,
        "view": _viewed,
    }
)
"""The methods of tensors and traced values, by name: operators of the same names, but for those listed here."""

PROPERTIES: Mapping[str, Callable[[Any], Any]] = {"T": _transposed, "at": At, "mT": matrix_transpose}
"""The properties of tensors and traced values, by name."""
