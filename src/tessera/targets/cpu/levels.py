"""The level of IR of CPUs: what one thread does; legal is what the emitter has a rule for."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp

from tessera.ir import text
from tessera.targets.cpu.emit.rules import emitted_ops
from tessera.targets.cpu.ir import dialect as cpu
from tessera.transforms.core import legality

_CPU = legality.Level(
    "cpu",
    "what one thread does: nests over tiles of the size of registers, every op has a rule of the emitter",
    kernel=emitted_ops() | {cpu.ReturnOp, cpu.YieldOp, scf.ConditionOp, scf.YieldOp},
    top=frozenset({cpu.FuncOp}),
)
LEVELS: Mapping[str, legality.Level] = MappingProxyType({**legality.LEVELS, "cpu": _CPU})
VERSIONS: Mapping[str, int] = MappingProxyType({**text.VERSIONS, "cpu": cpu.VERSION})


def read(source: str, name: str = "<text>") -> ModuleOp:
    """Parses and verifies IR text of the levels of CPUs."""
    context = text.new_context((*text.OWN_DIALECTS, cpu.Cpu))
    return text.read(source, name, context=context, versions=VERSIONS)
