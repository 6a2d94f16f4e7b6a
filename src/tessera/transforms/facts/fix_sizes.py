"""Sizes that facts decide become numbers in the head of a tile function: its shapes, and with them its grid.

Passes that ask how many program instances there are, whether an array ends where a view does, or how program_id is
divided up, then finds a number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr

from tessera.ir.common.attributes import SizesAttr, symbols_of
from tessera.ir.tile import dialect as tile
from tessera.shapes.expr import Dim, Size
from tessera.transforms.core.context import recorder_of
from tessera.transforms.core.facts import Fact, FactKind, Recorder
from tessera.transforms.core.function_pass import FunctionPass


@dataclass(frozen=True)
class FixSizes(FunctionPass):
    """`fix_sizes` for every tile function, with the facts of this compile."""

    name = "fix-sizes"

    def rewrite(self, function: tile.FuncOp, ctx: Context) -> None:
        fix_sizes(function, recorder_of(ctx))


def fix_sizes(function: tile.FuncOp, recorder: Recorder) -> None:
    """Fixes the sizes that were asked for already, and those that the grid is made of, which are asked for now."""
    wanted, asked = symbols_of(function.grid.data), recorder.guards
    values: dict[str, int] = {}
    for symbol, atom in _decided(function, recorder):
        if symbol not in values and (atom in asked or symbol in wanted):
            recorder.ask(atom)
            values[symbol] = int(atom.value)
    if values:
        shapes = [SizesAttr(_fixed(shape.data, values)) for shape in function.shapes]
        function.properties["shapes"] = ArrayAttr(shapes)
        function.properties["grid"] = SizesAttr(_fixed(function.grid.data, values))


def _decided(function: tile.FuncOp, recorder: Recorder) -> list[tuple[str, Fact]]:
    """The symbols that a fact gives a value, those first whose fact was asked for anyhow."""
    asked = recorder.guards
    found = [
        (str(size), atom)
        for index, shape in enumerate(function.shapes)
        for axis, size in enumerate(shape.data)
        if isinstance(size, Dim) and size.symbols == frozenset({str(size)})
        for atom in recorder.facts.about(FactKind.SIZE, f"arg{index}.size[{axis}]")
    ]
    return sorted(found, key=lambda one: one[1] not in asked)


def _fixed(sizes: tuple[Size, ...], values: Mapping[str, int]) -> tuple[Size, ...]:
    made = [size.substitute(values) if isinstance(size, Dim) else size for size in sizes]
    return tuple([size if isinstance(size, int) or size.constant is None else size.constant for size in made])
