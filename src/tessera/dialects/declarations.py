"""Ops are held against their declarations; what has been seen to fit one fits it again.

xDSL looks at the number and kind of an op's operands, results and attributes anew for each op, which takes longer than
all else that verification does. Ops are many, and their types and attributes, which never change, are few.
"""

from __future__ import annotations

from typing import Any, Final

from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation, OpDef

MOST: Final = 1 << 16
"""So much is kept of all declarations together; then all is looked at again."""
_fitting: dict[tuple[Any, ...], list[object]] = {}


class _Remembered(OpDef):
    """A declaration that an op is held against once for each choice of types and attributes."""

    def verify(self, op: Operation) -> None:
        if op.regions or op.successors:
            super().verify(op)
            return
        types = [value.type for value in op.operands]
        results = [value.type for value in op.results]
        parts: list[object] = [self, *types, *results, *op.properties.values(), *op.attributes.values()]
        # The parts are kept, so that no other object can have their place in memory.
        key = (len(types), len(results), *op.properties, *op.attributes, *map(id, parts))
        if key in _fitting:
            for trait in self.traits:
                trait.verify(op)
            return
        super().verify(op)
        if len(_fitting) >= MOST:
            _fitting.clear()
        _fitting[key] = parts


def remember(kind: type[Operation]) -> None:
    """Lets the declaration of a kind of op remember what fits it."""
    if issubclass(kind, IRDLOperation) and type(definition := kind.get_irdl_definition()) is OpDef:
        definition.__class__ = _Remembered
