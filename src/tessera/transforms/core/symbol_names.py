"""Names for new functions that no other symbol of the module has."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.traits import SymbolTable


def fresh_name(module: ModuleOp, wanted: str) -> str:
    """`wanted`, or `wanted_2`, `wanted_3` … if it is taken."""
    name, number = wanted, 1
    while SymbolTable.lookup_symbol(module, name) is not None:
        number += 1
        name = f"{wanted}_{number}"
    return name
