"""Instances of kernels: traced for one schedule and the facts that the trace asked for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tessera.dtypes.types import DType
from tessera.shapes.expr import Shape
from tessera.tile.calls.overlapping import say_overlapping
from tessera.tile.language.schedule import Schedule
from tessera.transforms.core.facts import Facts

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


@dataclass(frozen=True)
class Instance:
    """A kernel traced for one schedule and the facts it needed: its program, and where its arguments come from.

    `kinds` are the ranks and element types of arrays and the types of numbers, at those paths.
    """

    module: ModuleOp
    name: str
    paths: tuple[str, ...]
    kinds: tuple[object, ...]
    outputs: tuple[tuple[Shape, DType], ...]
    guards: Facts
    schedule: Schedule
    row_width: int | None
    """The width of the driving argument's rows, where the program depends on it."""

    def in_order(self, groups: Iterable[Iterable[str]]) -> Instance:
        """The same program for arguments that overlap, in groups of paths."""
        module = self.module.clone()
        function = module.body.block.first_op
        assert function is not None
        say_overlapping(function, self.paths, groups)
        return replace(self, module=module)
