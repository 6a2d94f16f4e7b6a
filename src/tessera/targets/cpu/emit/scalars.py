"""cpu level → LLVM text: scalars, as on every target."""

from __future__ import annotations

from tessera.targets.cpu.emit.emitter import emits
from tessera.targets.llvm import scalars

for _kind, _rule in scalars.RULES.items():
    emits(_kind, plain=True)(_rule)
