"""Python's own errors in a kernel's code, told in the words of the tile language: which names there are, what to write.

A name that a tile, an array or `tessera.tile` does not have, and an argument that an intrinsic does not take, are the
commonest: most come from NumPy, torch or Triton, so their words are looked up in a table first.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from types import MappingProxyType, ModuleType

from tessera.errors import CompileError, SourceSpan
from tessera.tile.language import intrinsics
from tessera.tile.language.values import Scalar, Tile, View

NAMES: Mapping[str, str] = MappingProxyType(
    {
        "T": "load a tile first: tile.load(x).T; an array whose axes are exchanged is passed as an argument, x.T",
        "transpose": "tile.transpose(x) exchanges the axes of a tile",
        "arange": "tile.iota(shape, axis, base) counts along an axis, from base on",
        "mean": "divide a sum: tile.sum(x) / x.shape[-1]",
        "clip": "tile.minimum(tile.maximum(x, low), high)",
        "clamp": "tile.minimum(tile.maximum(x, low), high)",
        "astype": "x.to(dtype) or tile.cast(x, dtype)",
        "softmax": "exp(x - max(x)) over its sum; tile.softmax_online and tile.softmax_accumulate go block by block",
        "relu": "tile.maximum(x, 0.0)",
        "matmul": "tile.dot(a, b) multiplies matrices",
        "num_programs": "sizes say it: tile.cdiv(x.shape[0], rows)",
        "cat": "tile.concat joins tiles",
        "join": "tile.concat joins tiles",
        "associative_scan": "tile.scan(x, combine, axis)",
        "cumprod": "tile.scan(x, lambda a, b: a * b)",
        "atomic_cas": "tile.atomic_add, atomic_max and atomic_min are what there is, and tile.scatter_add with indices",
        "print": "tile.debug_print prints from kernels",
        "device_print": "tile.debug_print prints from kernels",
        "device_assert": "tile.assert_ tests a condition",
        "static_range": "range unrolls, tile.range loops",
    }
)
"""What to write for names of other languages."""
ARGUMENTS: Mapping[str, str] = MappingProxyType(
    {
        "mask": "positions outside the array give pad= already; for others choose with tile.where, or look elements up "
        "with tile.gather(..., mask=)",
        "other": "pad= is what positions outside the array give",
        "boundary_check": "blocks stay inside their array by themselves, and pad= is what lies outside",
        "padding_option": "pad= is what positions outside the array give",
        "dim": "write axis=",
        "keepdim": "write keepdims=",
        "eviction_policy": "prefetch= and memory= say how an array is loaded",
        "cache_modifier": "prefetch= and memory= say how an array is loaded",
    }
)
"""What to write for arguments of other languages."""
_ARGUMENT = re.compile(r"(\w+)\(\) got an unexpected keyword argument '(\w+)'")
_CALL = re.compile(r"(\w+)\(\) (missing|takes) ")
_UFUNC = re.compile(r"has no callable (\w+) method")
PLAIN = "this is Python's own error while the kernel's code ran on tiles; check names and types there"


def compile_error(error: Exception, span: SourceSpan | None) -> CompileError:
    """The error that a kernel's user sees for one of Python's own."""
    told = _of_a_name(error) if isinstance(error, AttributeError) else _of_a_call(error)
    message, hint = told or (f"{type(error).__name__}: {error}", PLAIN)
    return CompileError(message, span=span, hint=hint)


def _of_a_name(error: AttributeError) -> tuple[str, str] | None:
    name, holder = error.name, error.obj
    if name is None:
        return None
    if isinstance(holder, ModuleType) and holder.__name__ in ("tessera.tile", intrinsics.__name__):
        return f"tessera.tile has no {name}", _instead(name, intrinsics.__all__, "tile.")
    if isinstance(holder, Tile | View | Scalar):
        attributes = [one for one in dir(type(holder)) if not one.startswith("_")]
        if name in intrinsics.__all__ and isinstance(holder, Tile):
            return f"{holder} has no {name}", f"it is a function: tile.{name}(x)"
        return f"{holder} has no {name}", _instead(name, attributes, "")
    return None


def _of_a_call(error: Exception) -> tuple[str, str] | None:
    said = str(error)
    if (found := _ARGUMENT.search(said)) and (taken := _parameters(found[1], error)):
        function, argument = found.groups()
        return f"tile.{function} has no argument {argument}", ARGUMENTS.get(argument) or f"it takes {', '.join(taken)}"
    if (found := _CALL.search(said)) and (taken := _parameters(found[1], error)):
        return f"tile.{said}", f"it takes {', '.join(taken)}"
    if found := _UFUNC.search(said):
        name = found[1]
        known = f"tile.{name}(x)" if name in intrinsics.__all__ else _instead(name, intrinsics.__all__, "tile.")
        return f"NumPy's {name} does not work on tiles", known
    return None


def _parameters(function: str, error: Exception) -> list[str]:
    """The names of what an intrinsic takes; none for a function of that name which is the user's own."""
    found = getattr(intrinsics, function) if function in intrinsics.__all__ else None
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    seen = {} if step is None else {**step.tb_frame.f_globals, **step.tb_frame.f_locals}
    if not callable(found) or seen.get(function, found) is not found:
        return []
    return list(inspect.signature(found).parameters)


def _instead(name: str, there: Iterable[str], prefix: str) -> str:
    if name in NAMES:
        return NAMES[name]
    near = get_close_matches(name, list(there), 3)
    if near:
        return f"{' or '.join(prefix + one for one in near)} is near; dir() and the page Kernels list all"
    return "dir() and the page Kernels list what there is; elementwise work and tile.scan make most of the rest"
