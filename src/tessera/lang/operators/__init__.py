"""Operators: the functions of the Array API standard and the deep-learning set, for traced values and tensors alike.

This is the standard's namespace. Its names are those of the registry; the module of each loads when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tessera.dtypes.types import STANDARD_NAMES
from tessera.lang.operator_registry import ARRAY_API_VERSION, OPERATORS, operator_named

if TYPE_CHECKING:  # for tools that read sources
    from tessera.lang.creation import *
    from tessera.lang.operators.attention import *
    from tessera.lang.operators.composed_elementwise import *
    from tessera.lang.operators.creation import *
    from tessera.lang.operators.data_types import *
    from tessera.lang.operators.elementwise import *
    from tessera.lang.operators.inspection import *
    from tessera.lang.operators.layers.activations import *
    from tessera.lang.operators.layers.convolution import *
    from tessera.lang.operators.layers.losses import *
    from tessera.lang.operators.layers.pooling import *
    from tessera.lang.operators.layers.resizing import *
    from tessera.lang.operators.linear_algebra import *
    from tessera.lang.operators.manipulation import *
    from tessera.lang.operators.networks import *
    from tessera.lang.operators.normalization import *
    from tessera.lang.operators.numerics.comparing import *
    from tessera.lang.operators.numerics.counting import *
    from tessera.lang.operators.numerics.matrices import *
    from tessera.lang.operators.numerics.order_statistics import *
    from tessera.lang.operators.numerics.positions import *
    from tessera.lang.operators.searching import *
    from tessera.lang.operators.sets import *
    from tessera.lang.operators.sorting import *
    from tessera.lang.operators.statistics import *
    from tessera.lang.operators.taking import *
else:
    globals().update(STANDARD_NAMES, __all__=["__array_api_version__", *STANDARD_NAMES, *OPERATORS])

__array_api_version__ = ARRAY_API_VERSION


def __getattr__(name: str) -> Any:
    if name not in OPERATORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = operator_named(name)
    return found


def __dir__() -> list[str]:
    return sorted(globals()["__all__"])
