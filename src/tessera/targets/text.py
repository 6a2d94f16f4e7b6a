"""IR text with the dialects of targets in it: what `tessera.ir.text` does, for the levels below it, too."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Dialect, Operation

from tessera.ir import structural_hash as structure
from tessera.ir import text
from tessera.ir.pipe import dialect as pipes
from tessera.ir.text import verify, write
from tessera.targets.cpu.ir import dialect as cpu
from tessera.targets.cuda.ir import nv

__all__ = ["DIALECTS", "VERSIONS", "new_context", "read", "stamp", "structural_hash", "verify", "versions_of", "write"]

TARGETS: dict[str, tuple[Dialect, int]] = {
    "cpu": (cpu.Cpu, cpu.VERSION),
    "pipe": (pipes.Pipe, pipes.VERSION),
    "nv": (nv.Nv, nv.VERSION),
}
DIALECTS: tuple[Dialect, ...] = (*text.OWN_DIALECTS, *(dialect for dialect, _ in TARGETS.values()))
VERSIONS: dict[str, int] = {**text.VERSIONS, **{name: version for name, (_, version) in TARGETS.items()}}


def new_context() -> Context:
    """A context that knows the dialects of all levels."""
    return text.new_context(DIALECTS)


def read(source: str, name: str = "<text>", *, context: Context | None = None) -> ModuleOp:
    """Parses and verifies IR text of any level."""
    return text.read(source, name, context=context or new_context(), versions=VERSIONS)


def versions_of(module: Operation) -> dict[str, int]:
    """The versions that the meaning of a module rests on: of the dialects of targets, those that it uses."""
    used = {op.name.partition(".")[0] for op in module.walk()}
    return {name: version for name, version in VERSIONS.items() if name in used or name not in TARGETS}


def stamp(module: ModuleOp) -> ModuleOp:
    """Writes the dialect versions into the module."""
    return text.stamp(module, versions_of(module))


def structural_hash(module: Operation) -> str:
    """The identity of a module of any level; above the targets, that of `tessera.ir.structural_hash`."""
    return structure.structural_hash(module, versions_of(module))
