"""`limit-sizes`: says in the heads of tile functions how large symbols are at most, where a program serves no others.

Copies then leave out rows that are never there (`hopper/shared_memory.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr
from xdsl.ir import BlockArgument

from tessera.ir.common.attributes import integer
from tessera.ir.tile import dialect as tile
from tessera.shapes.expr import Size
from tessera.transforms.core.function_pass import FunctionPass

MOST = "tile.most"
"""The attribute of a function that says how large symbols are at most, such as `{M = 16}`."""


@dataclass(frozen=True)
class LimitSizes(FunctionPass):
    """`limit_sizes`, for every tile function; limits are given as `M=16`."""

    name = "limit-sizes"
    most: tuple[str, ...] = ()

    def rewrite(self, function: tile.FuncOp, ctx: Context) -> None:
        limit_sizes(function, {name: int(number) for name, _, number in (one.partition("=") for one in self.most)})


def limit_sizes(function: tile.FuncOp, most: Mapping[str, int]) -> None:
    """Says in the head of a function what limits its own symbols have."""
    own = {str(size) for shape in function.shapes for size in shape.data}
    found = {name: integer(number) for name, number in sorted(most.items()) if name in own}
    if found:
        function.attributes[MOST] = DictionaryAttr(found)


def most_of(argument: BlockArgument, size: Size) -> int | None:
    """How large a size of an argument is at most; None where that is not known."""
    if isinstance(size, int):
        return size
    function = argument.block.parent_op()
    limits = None if function is None else function.attributes.get(MOST)
    found = limits.data.get(str(size)) if isinstance(limits, DictionaryAttr) else None
    return found.value.data if isinstance(found, IntegerAttr) else None
