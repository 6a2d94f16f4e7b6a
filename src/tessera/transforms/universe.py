"""The entry point by which xDSL's own tools see our dialects and passes (these under the prefix `tessera-`).

Nothing is listed here: it is made of the dialects' and passes' own lists.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.universe import Universe

from tessera.ir.text import OWN_DIALECTS
from tessera.transforms.pipeline import TARGET_INDEPENDENT_PASSES


def _dialect(dialect: Dialect) -> Callable[[], Dialect]:
    return lambda: dialect


def _pass(kind: type[ModulePass]) -> Callable[[], type[ModulePass]]:
    # xDSL has passes of the same names; its registry wants each name once.
    prefixed = type(kind.__name__, (kind,), {"name": f"tessera-{kind.name}"})
    return lambda: prefixed


TESSERA_UNIVERSE = Universe(
    all_dialects={dialect.name: _dialect(dialect) for dialect in OWN_DIALECTS},
    all_passes={f"tessera-{name}": _pass(kind) for name, kind in TARGET_INDEPENDENT_PASSES.items()},
)
