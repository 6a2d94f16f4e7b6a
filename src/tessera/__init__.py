"""Tessera: tiles, not threads. One Python stack from research to production for deep learning."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tessera.deprecated_imports import install as _find_moved_modules
from tessera.dtypes.promotion import as_dtype, promote
from tessera.dtypes.types import (
    DType,
    Policy,
    accum,
    bf16,
    bool_,
    f4e2m1,
    f6e2m3,
    f6e3m2,
    f8e4m3,
    f8e5m2,
    f16,
    f32,
    f64,
    i4,
    i8,
    i16,
    i32,
    i64,
    loss_scale,
    saturate,
    scaled,
    stochastic_round,
    tf32,
    u4,
    u8,
    u16,
    u32,
    u64,
)
from tessera.errors import (
    AutotuneError,
    CompileError,
    DeviceError,
    DtypeError,
    EffectError,
    GuardError,
    InternalError,
    RaceError,
    RangeError,
    ResourceError,
    ShapeError,
    TesseraError,
    TesseraWarning,
)
from tessera.lang.operator_registry import ALIASES as _ALIASES
from tessera.lang.operator_registry import ARRAY_API_VERSION as _ARRAY_API_VERSION
from tessera.lang.operator_registry import METHODS as _METHODS
from tessera.lang.operator_registry import OPERATORS as _OPERATORS
from tessera.lang.spellings import HINTS as _HINTS
from tessera.lang.tiering import provide as _provide_tiers
from tessera.python_versions import tell as _tell_of_python
from tessera.runtime.device.device import Device, DeviceBackend, default_device, device, register_backend
from tessera.runtime.tensor.creation import array, from_numpy
from tessera.runtime.tensor.operators import OPERATORS as _OPERATORS_OF_TENSORS
from tessera.runtime.tensor.quantized import QuantizedTensor, dequantize, quantize
from tessera.runtime.tensor.random import rand, randint, randn, randn_like
from tessera.runtime.tensor.tensor import Tensor, share_memory
from tessera.runtime.tensor.tensor import give_methods as _give_methods
from tessera.runtime.tensor.tracking import shape_history, track_shapes
from tessera.shapes.annotations import KTile, Out

if TYPE_CHECKING:
    from tessera import distributed, knobs, tile
    from tessera.dtypes.promotion import can_cast
    from tessera.lang import operators as ops
    from tessera.lang import random
    from tessera.lang.autodiff import autodiff
    from tessera.lang.batching import hessian, jacfwd, jacrev, vmap
    from tessera.lang.checking import check
    from tessera.lang.checkpoints import checkpoint, keep_as, remat
    from tessera.lang.control import cond, fori_loop, scan, while_loop
    from tessera.lang.creation import empty_like, full_like, ones, ones_like, zeros, zeros_like
    from tessera.lang.custom_derivatives import custom_jvp, custom_vjp
    from tessera.lang.derivatives import grad, jvp, linearize, stop_gradient, value_and_grad, vjp
    from tessera.lang.gradient_checking import check_grad
    from tessera.lang.jit import jit
    from tessera.lang.operator import operator
    from tessera.lang.state import State, debug_print
    from tessera.runtime import cuda
    from tessera.runtime.tensor.creation import arange, asarray, empty, eye, from_dlpack, full, linspace
    from tessera.runtime.tensor.files import load, save
    from tessera.runtime.tensor.pytree import register_node, tree_flatten, tree_leaves, tree_map, tree_unflatten
    from tessera.tile.calls import verification as verify
    from tessera.tile.calls.function import kernel
    from tessera.tile.language.schedule import Schedule

    # A parameter of a kernel that is annotated so is such a tile.
    from tessera.tile.language.values import Tile
else:
    from tessera.shapes.annotations import Tile

_tell_of_python()
_find_moved_modules()
__version__ = "0.1.0"
__array_api_version__ = _ARRAY_API_VERSION

# The Array API's names for the same types.
float64, float32, float16, bfloat16 = f64, f32, f16, bf16
int64, int32, int16, int8 = i64, i32, i16, i8
uint64, uint32, uint16, uint8 = u64, u32, u16, u8
bool = bool_  # noqa: A001  (the standard asks for `tessera.bool`)

# Names that are imported when first used. Of one that is an operator's, too, the package's own is meant: `tile`.
_LAZY = {
    **_OPERATORS,
    "autodiff": "tessera.lang.autodiff",
    "Schedule": "tessera.tile.language.schedule",
    "bench": "tessera.bench",
    "check": "tessera.lang.checking",
    "check_grad": "tessera.lang.gradient_checking",
    "compile": "tessera.compile",
    "cuda": "tessera.runtime.cuda",
    "distributed": "tessera.distributed",
    "jit": "tessera.lang.jit",
    "kernel": "tessera.tile.calls.function",
    "knobs": "tessera.knobs",
    "metatracing": "tessera.metatracing",
    "operator": "tessera.lang.operator",
    "ops": "tessera.lang.operators",
    "random": "tessera.lang.random",
    "tile": "tessera.tile",
    "verify": "tessera.tile.calls.verification",
    **dict.fromkeys(("State", "debug_print"), "tessera.lang.state"),
    **dict.fromkeys(("grad", "jvp", "linearize", "stop_gradient", "value_and_grad", "vjp"), "tessera.lang.derivatives"),
    **dict.fromkeys(("checkpoint", "keep_as", "remat"), "tessera.lang.checkpoints"),
    **dict.fromkeys(("custom_jvp", "custom_vjp"), "tessera.lang.custom_derivatives"),
    **dict.fromkeys(("hessian", "jacfwd", "jacrev", "vmap"), "tessera.lang.batching"),
    **dict.fromkeys(("load", "save"), "tessera.runtime.tensor.files"),
    **dict.fromkeys(("cond", "fori_loop", "scan", "while_loop"), "tessera.lang.control"),
    **dict.fromkeys(
        ("register_node", "tree_flatten", "tree_leaves", "tree_map", "tree_unflatten"), "tessera.runtime.tensor.pytree"
    ),
}
_MODULES = ("bench", "compile", "cuda", "distributed", "knobs", "metatracing", "ops", "random", "tile", "verify")


def _operators() -> Any:
    from tessera.lang.operators.methods import METHODS, PROPERTIES

    return METHODS, PROPERTIES


def _numpy_functions() -> Any:
    from tessera.lang.numpy_functions import FUNCTIONS

    return FUNCTIONS


def _missing(what: str, name: str) -> AttributeError:
    from tessera.lang.spellings import MissingAttributeError

    def names() -> set[str]:
        known = {*(__dir__() if what == _MODULE else dir(Tensor))}
        return known | {alias for alias, one in _ALIASES.items() if one in known}

    return MissingAttributeError(what, name, names)


_MODULE = "module 'tessera'"
_OPERATORS_OF_TENSORS.use(_operators, frozenset(_ALIASES), _missing, _numpy_functions)
_give_methods(
    (*_METHODS, "at", "t", "view"), {*_ALIASES, *_HINTS, *_OPERATORS, *[f"{name}_" for name in _METHODS]} - {"device"}
)


def _tiers(jitted: Any, wanted: Any) -> Any:
    from tessera.metatracing.tiered_functions import tiers_of

    return tiers_of(jitted, wanted)


_provide_tiers(_tiers)


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        module = import_module(_LAZY[name])
        found = module if name in _MODULES else getattr(module, name)
    elif name in _ALIASES:
        found = getattr(import_module(__name__), _ALIASES[name])
    else:
        raise _missing(_MODULE, name)
    globals()[name] = found
    return found


__all__ = [
    "AutotuneError",
    "CompileError",
    "DType",
    "Device",
    "DeviceBackend",
    "DeviceError",
    "DtypeError",
    "EffectError",
    "GuardError",
    "InternalError",
    "KTile",
    "Out",
    "Policy",
    "QuantizedTensor",
    "RaceError",
    "RangeError",
    "ResourceError",
    "Schedule",
    "ShapeError",
    "State",
    "Tensor",
    "TesseraError",
    "TesseraWarning",
    "Tile",
    "__version__",
    "accum",
    "arange",
    "array",
    "as_dtype",
    "asarray",
    "autodiff",
    "bf16",
    "bfloat16",
    "bool",
    "bool_",
    "can_cast",
    "check",
    "check_grad",
    "checkpoint",
    "cond",
    "cuda",
    "custom_jvp",
    "custom_vjp",
    "debug_print",
    "default_device",
    "dequantize",
    "device",
    "distributed",
    "empty",
    "empty_like",
    "eye",
    "f4e2m1",
    "f6e2m3",
    "f6e3m2",
    "f8e4m3",
    "f8e5m2",
    "f16",
    "f32",
    "f64",
    "float16",
    "float32",
    "float64",
    "fori_loop",
    "from_dlpack",
    "from_numpy",
    "full",
    "full_like",
    "grad",
    "hessian",
    "i4",
    "i8",
    "i16",
    "i32",
    "i64",
    "int8",
    "int16",
    "int32",
    "int64",
    "jacfwd",
    "jacrev",
    "jit",
    "jvp",
    "keep_as",
    "kernel",
    "knobs",
    "linearize",
    "linspace",
    "load",
    "loss_scale",
    "ones",
    "ones_like",
    "operator",
    "ops",
    "promote",
    "quantize",
    "rand",
    "randint",
    "randn",
    "randn_like",
    "random",
    "register_backend",
    "register_node",
    "remat",
    "saturate",
    "save",
    "scaled",
    "scan",
    "shape_history",
    "share_memory",
    "stochastic_round",
    "stop_gradient",
    "tf32",
    "tile",
    "track_shapes",
    "tree_flatten",
    "tree_leaves",
    "tree_map",
    "tree_unflatten",
    "u4",
    "u8",
    "u16",
    "u32",
    "u64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "value_and_grad",
    "verify",
    "vjp",
    "vmap",
    "while_loop",
    "zeros",
    "zeros_like",
]


def __dir__() -> list[str]:
    """The public names, loaded or not; modules of the package that happen to be loaded are none of them."""
    return sorted({*__all__, *_LAZY, "__array_api_version__"})
