"""The levels of IR of GPUs: tiles in partitions, and what blocks of threads do: ops that the emitter has rules for."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp

from tessera.ir import text
from tessera.ir.pipe import dialect as pipes
from tessera.targets.cuda.emit.rules import emitted_ops
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.ir import nv as dialect
from tessera.transforms.core import legality

_PIPE = legality.Level(
    "pipe",
    "tile functions whose loads run ahead: rings, or a producer and consumers",
    kernel=legality.TILE_OPS | frozenset(pipes.Pipe.operations),
)
_NV = legality.Level(
    "nv",
    "what one block of threads does: every tile has a layout, every op has a rule of the emitter",
    kernel=emitted_ops() | {nv.ReturnOp, scf.ConditionOp, scf.YieldOp},
    top=frozenset({nv.FuncOp}),
    has_layouts=True,
)
LEVELS: Mapping[str, legality.Level] = MappingProxyType({**legality.LEVELS, "pipe": _PIPE, "nv": _NV})
VERSIONS: Mapping[str, int] = MappingProxyType({**text.VERSIONS, "pipe": pipes.VERSION, "nv": dialect.VERSION})


def read(source: str, name: str = "<text>") -> ModuleOp:
    """Parses and verifies IR text of the levels of GPUs."""
    context = text.new_context((*text.OWN_DIALECTS, pipes.Pipe, dialect.Nv))
    return text.read(source, name, context=context, versions=VERSIONS)
