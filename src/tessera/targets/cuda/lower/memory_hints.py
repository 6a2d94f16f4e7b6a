"""Which hints of a tile function change nothing on a GPU, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from tessera.ir.tile import dialect as tile
from tessera.ir.tile.hint_attributes import hints_of
from tessera.ir.tile.hints import IN_ORDER, SMEM
from tessera.ir.tile.types import tile_type
from tessera.transforms.pipelining.make_async import (
    feeds_dots,
    goes_through_shared_memory,
    stages_asked,
    why_not_ahead,
    why_not_copied,
)


def why_not_vector(vector: int, value: SSAValue) -> str | None:
    """Why threads do not have so many neighbours of a tile, or None."""
    shape = tile_type(value).get_shape()
    if not shape or shape[-1] % vector:
        return f"rows of {shape[-1] if shape else 1} elements are no whole pieces of {vector}"
    return None


def stages_of_hints(function: tile.FuncOp) -> int | None:
    """How many stages the rings of a function's loops are asked to have, for operands of dots."""
    return stages_asked(
        op
        for op in function.body.walk()
        if isinstance(op, tile.LoadOp) and feeds_dots(op) and isinstance(op.parent_op(), scf.ForOp)
    )


def why_not_in_loop(op: scf.ForOp | scf.WhileOp) -> Iterator[tuple[str, str]]:
    """The hint of a loop, where no load takes it over."""
    if isinstance(op, scf.WhileOp):
        yield "prefetch", "a loop that may be left early does not know what it will load"
    elif not any(isinstance(one, tile.LoadOp) for one in op.body.block.ops):
        yield "prefetch", "the loop loads no tile itself; branches and loops within it may"


@dataclass
class PortableHints:
    """The path for every GPU."""

    function: tile.FuncOp

    def __post_init__(self) -> None:
        self.written = tile.written_memory(self.function)

    def unheeded(self, op: Operation) -> Iterator[tuple[str, str]]:
        """The hints of an op that change nothing, and why."""
        match op:
            case tile.FuncOp():
                if hints_of(op).swizzle == IN_ORDER and not self._has_shared_tiles():
                    yield "swizzle", "the kernel has no tiles in shared memory that dots or hints ask for"
            case scf.ForOp() | scf.WhileOp():
                yield from why_not_in_loop(op)
            case tile.LoadOp():
                yield from self._of_load(op)
            case tile.ReadOp():
                asked = ((name, getattr(hints_of(op), name)) for name in ("memory", "vector", "prefetch"))
                yield from ((name, "its elements are looked up one by one") for name, value in asked if value)
            case tile.StoreOp():
                yield from self._of_vector(op, op.value)
            case _:
                pass

    def _has_shared_tiles(self) -> bool:
        ops = list(self.function.body.walk())
        return any(isinstance(op, tile.DotOp) or (isinstance(op, tile.LoadOp) and self._is_copied(op)) for op in ops)

    def _is_copied(self, op: tile.LoadOp) -> bool:
        is_ahead = hints_of(op).prefetch is not None and why_not_ahead(op, self.written) is None
        return is_ahead or goes_through_shared_memory(op)

    def _of_load(self, op: tile.LoadOp) -> Iterator[tuple[str, str]]:
        hints = hints_of(op)
        if hints.memory == SMEM and (reason := why_not_copied(op)) is not None:
            yield "memory", reason
        if hints.prefetch is not None and (reason := why_not_ahead(op, self.written)) is not None:
            yield "prefetch", reason
        if hints.vector is not None and self._is_copied(op):
            yield "vector", "it is copied to shared memory, 16 bytes at a time"
        else:
            yield from self._of_vector(op, op.result)

    @staticmethod
    def _of_vector(op: tile.LoadOp | tile.StoreOp, moved: SSAValue) -> Iterator[tuple[str, str]]:
        vector = hints_of(op).vector
        if vector is not None and (reason := why_not_vector(vector, moved)) is not None:
            yield "vector", reason


class SpecializedHints:
    """Producers that copy operands of dots, and consumers that multiply them."""

    @staticmethod
    def unheeded(op: Operation) -> Iterator[tuple[str, str]]:
        """The hints of an op that change nothing, and why."""
        hints = hints_of(op)
        is_operand = isinstance(op, tile.BoxLoad) and feeds_dots(op)
        if hints.swizzle == IN_ORDER:
            yield "swizzle", "wgmma reads operands whose chunks are swizzled"
        if hints.memory == SMEM and not is_operand:
            yield "memory", "producers copy operands of dots, and consumers load all else into registers"
        if isinstance(op, scf.ForOp | scf.WhileOp):
            yield from why_not_in_loop(op)
        elif hints.prefetch is not None and not (is_operand and isinstance(op.parent_op(), scf.ForOp)):
            yield "prefetch", "producers run ahead of loops that count, with what is an operand of dots only"
        if hints.vector is not None and is_operand:
            yield "vector", "a copy takes it as one box"
        elif hints.vector is not None:
            yield "vector", "it has the layout of the dots that it meets, and no more than that are moved at once"
