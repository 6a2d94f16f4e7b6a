"""Agents of the pipe dialect: one copies, others compute, rings are what they share; and products on their way.

A cursor counts how often an agent has come to a ring: turn `n` is in slot `n` modulo the ring's depth. The agent that
copies fills turns in order, as far ahead as there are slots; each of the others takes every turn, and releases it.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import ClassVar

from xdsl.dialects.builtin import IndexType, IntAttr, TensorType, UnitAttr
from xdsl.ir import Attribute, ParametrizedAttribute, Region, SSAValue, TypeAttribute
from xdsl.irdl import (
    BaseAttr,
    IRDLOperation,
    VarConstraint,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    opt_region_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import EffectInstance, NoTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from tessera.ir.common.attributes import IntegerConstraint, integer
from tessera.ir.common.effects import MEMORY, HasEffects, reads, writes
from tessera.ir.common.elements import TileType, dtype_of
from tessera.ir.pipe.copies import AnyRing, is_tile_type, ring_type, slot_type
from tessera.ir.tile.dialect import FuncOp, ProgramIdOp, memory_of
from tessera.ir.tile.types import AnyTile, AnyView, check_axis, check_tile, tile_type, view_type


class _Slots(ParametrizedAttribute, TypeAttribute):
    """A type that is told from others of its kind by a number of slots."""

    depth: IntAttr

    def verify(self) -> None:
        if self.depth.data < 1:
            raise VerifyException(f"a ring has at least one slot, got {self.depth.data}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return (IntAttr(parser.parse_integer(allow_boolean=False)),)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(str(self.depth.data))


@irdl_attr_definition
class CursorType(_Slots):
    """A turn of a ring of so many slots: `!pipe.cursor<3>`."""

    name = "pipe.cursor"

    def __init__(self, depth: int | IntAttr) -> None:
        super().__init__(IntAttr(depth) if isinstance(depth, int) else depth)


@irdl_attr_definition
class MailboxType(_Slots):
    """A ring of so many slots for numbers of programs: `!pipe.mailbox<2>`."""

    name = "pipe.mailbox"

    def __init__(self, depth: int | IntAttr) -> None:
        super().__init__(IntAttr(depth) if isinstance(depth, int) else depth)


@irdl_attr_definition
class PendingType(ParametrizedAttribute, TypeAttribute):
    """Sums of products that are still being computed: `!pipe.pending<64x128xf32>`. Nothing can read them."""

    name = "pipe.pending"

    tile: Attribute

    def verify(self) -> None:
        if not is_tile_type(self.tile):
            raise VerifyException(f"products give tiles, got {self.tile}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            sizes, element = parser.parse_ranked_shape()
            return (TensorType(element, sizes),)

    def print_parameters(self, printer: Printer) -> None:
        tile = self.tile
        assert isinstance(tile, TensorType)
        with printer.in_angle_brackets():
            printer.print_string(f"{'x'.join(map(str, tile.get_shape()))}x")
            printer.print_attribute(tile.element_type)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]


AnyCursor = BaseAttr(CursorType)
AnyMailbox = BaseAttr(MailboxType)
AnyPending = BaseAttr(PendingType)
_AnySums = AnyTile | AnyPending


def cursor_depth(value: SSAValue) -> int:
    assert isinstance(value.type, CursorType)
    return value.type.depth.data


def ring_depth(value: SSAValue) -> int:
    """The slots of a ring, or of a mailbox."""
    return value.type.depth.data if isinstance(value.type, MailboxType) else ring_type(value).depth.data


def sums_type(value: SSAValue) -> TileType:
    """The type of sums, whether they are there already or not."""
    if not isinstance(value.type, PendingType):
        return tile_type(value)
    tile = value.type.tile
    assert isinstance(tile, TensorType)
    return tile  # pyright: ignore[reportUnknownVariableType]


# Who does what


@irdl_op_definition
class RolesOp(IRDLOperation):
    """Agents that run beside each other: one that copies, `agents` that compute, and perhaps one that turns tiles.

    All that leaves the regions is memory. In the region `computes`, tiles are those of one agent.
    """

    name = "pipe.roles"
    agents = prop_def(IntegerConstraint)
    copies = region_def("single_block")
    turns = opt_region_def("single_block")
    computes = region_def("single_block")
    traits = traits_def(NoTerminator())
    assembly_format = "$agents attr-dict `copies` $copies (`turns` $turns^)? `computes` $computes"

    def __init__(self, agents: int, copies: Region, computes: Region, turns: Region | None = None) -> None:
        regions = [copies, [] if turns is None else [turns], computes]
        super().__init__(properties={"agents": integer(agents)}, regions=regions)

    def verify_(self) -> None:
        if self.agents.value.data < 1:
            raise VerifyException(f"somebody has to compute, got {self.agents.value.data} agents")
        around = self.parent_op()
        if not isinstance(around, FuncOp):
            raise VerifyException("roles are given at the top of a tile function")
        if any(isinstance(op, RolesOp) and op is not self for op in around.body.block.ops):
            raise VerifyException("a function gives roles once")
        if any(region.block.args for region in self.regions):
            raise VerifyException("roles take no arguments")
        # Text cannot tell an empty block from none.
        if not all(region.block.ops for region in self.regions):
            raise VerifyException("an agent does something")


def roles_around(op: IRDLOperation) -> RolesOp:
    """The roles that an op is a part of."""
    found = op.parent_op()
    while found is not None and not isinstance(found, RolesOp):
        found = found.parent_op()
    if found is None:
        raise VerifyException(f"{op.name} is a part of a role")
    return found


def computes(op: IRDLOperation) -> bool:
    """Whether an op is in the region of those that compute."""
    return roles_around(op).computes.is_ancestor(op)


def copies(op: IRDLOperation) -> bool:
    """Whether an op is in the region of the agent that copies."""
    return roles_around(op).copies.is_ancestor(op)


def _function_around(op: IRDLOperation) -> FuncOp:
    found = op.parent_op()
    while found is not None and not isinstance(found, FuncOp):
        found = found.parent_op()
    if found is None:
        raise VerifyException(f"{op.name} is a part of a tile function")
    return found


def check_worker(op: IRDLOperation) -> None:
    """Refuses an op that only workers have."""
    around = _function_around(op)
    if "workers" not in around.attributes:
        raise VerifyException("a function with workers has the attribute `workers`")
    if any(isinstance(inner, ProgramIdOp) for inner in around.body.walk()):
        raise VerifyException("a worker goes through many programs: tile.program_id is none of them")


def _check_younger(op: DotAwaitOp | DotsBehindOp) -> None:
    if not computes(op):
        raise VerifyException("the agent that copies has no products")
    if op.younger.value.data < 0:
        raise VerifyException(f"a number of products is not negative, got {op.younger.value.data}")


@irdl_op_definition
class AgentOp(IRDLOperation):
    """The number of this agent among those that compute."""

    name = "pipe.agent"
    result = result_def(IndexType)
    traits = traits_def(Pure())
    assembly_format = "attr-dict"

    def __init__(self) -> None:
        super().__init__(result_types=[IndexType()])

    def verify_(self) -> None:
        if not computes(self):
            raise VerifyException("the one that copies has no number")


@irdl_op_definition
class WorkerOp(IRDLOperation):
    """The number of this worker: a function with the attribute `workers` runs once for each, whatever its grid is.

    Workers share the programs of the grid among themselves: each goes through some of them in a loop.
    """

    name = "pipe.worker"
    result = result_def(IndexType)
    traits = traits_def(Pure())
    assembly_format = "attr-dict"

    def __init__(self) -> None:
        super().__init__(result_types=[IndexType()])

    def verify_(self) -> None:
        check_worker(self)


@irdl_op_definition
class WorkersOp(IRDLOperation):
    """How many workers there are."""

    name = "pipe.workers"
    result = result_def(IndexType)
    traits = traits_def(Pure())
    assembly_format = "attr-dict"

    def __init__(self) -> None:
        super().__init__(result_types=[IndexType()])

    def verify_(self) -> None:
        check_worker(self)


@irdl_op_definition
class ExtentOp(IRDLOperation):
    """How many programs the grid has along an axis."""

    name = "pipe.extent"
    axis = prop_def(IntegerConstraint)
    result = result_def(IndexType)
    traits = traits_def(Pure())
    assembly_format = "$axis attr-dict"

    def __init__(self, axis: int) -> None:
        super().__init__(properties={"axis": integer(axis)}, result_types=[IndexType()])

    def verify_(self) -> None:
        check_axis(self.axis.value.data, len(_function_around(self).grid.data))


# Rings


@irdl_op_definition
class CursorOp(IRDLOperation):
    """The first turn of a ring, or of a mailbox."""

    name = "pipe.cursor"
    ring = operand_def(AnyRing | AnyMailbox)
    result = result_def(AnyCursor)
    traits = traits_def(Pure())
    assembly_format = "$ring attr-dict `:` type($ring) `->` type($result)"

    def __init__(self, ring: SSAValue) -> None:
        super().__init__(operands=[ring], result_types=[CursorType(ring_depth(ring))])

    def verify_(self) -> None:
        check_cursor(self.ring, self.result)


@irdl_op_definition
class NextOp(IRDLOperation):
    """The turn behind another."""

    name = "pipe.next"
    T: ClassVar = VarConstraint("T", AnyCursor)
    cursor = operand_def(T)
    result = result_def(T)
    traits = traits_def(Pure())
    assembly_format = "$cursor attr-dict `:` type($cursor)"

    def __init__(self, cursor: SSAValue) -> None:
        super().__init__(operands=[cursor], result_types=[cursor.type])


def check_cursor(ring: SSAValue, cursor: SSAValue) -> None:
    """Refuses a cursor of another ring."""
    depth = ring_depth(ring)
    if cursor_depth(cursor) != depth:
        raise VerifyException(f"a cursor of {cursor_depth(cursor)} slots in a ring of {depth}")


@irdl_op_definition
class FillOp(IRDLOperation):
    """Waits until all agents have released what was in a turn's slot, and begins to copy a tile into it.

    The tile is at `offsets` of a view; zeros where it leaves the view. Nobody waits for the copy here.
    """

    name = "pipe.fill"
    view = operand_def(AnyView)
    offsets = var_operand_def(IndexType)
    ring = operand_def(AnyRing)
    cursor = operand_def(AnyCursor)
    traits = traits_def(HasEffects())
    assembly_format = (
        "$view `[` $offsets `]` `,` $ring `[` $cursor `]` attr-dict `:` type($view) `,` type($ring) `,` type($cursor)"
    )

    def __init__(self, view: SSAValue, offsets: Sequence[SSAValue], ring: SSAValue, cursor: SSAValue) -> None:
        super().__init__(operands=[view, offsets, ring, cursor])

    def verify_(self) -> None:
        check_cursor(self.ring, self.cursor)
        if not copies(self):
            raise VerifyException("rings are filled by the agent that copies")
        seen, held = view_type(self.view), slot_type(self.ring)
        if len(self.offsets) != seen.rank.data or held.get_num_dims() != seen.rank.data:
            raise VerifyException(f"{len(self.offsets)} offsets into {seen}, for slots of {held}")
        if seen.element != held.element_type:
            raise VerifyException(f"the view holds {seen.element}, the ring {held.element_type}")

    def effects(self) -> AbstractSet[EffectInstance]:
        return {reads(MEMORY, memory_of(self.view)), writes(MEMORY, self.ring)}


@irdl_op_definition
class TakeOp(IRDLOperation):
    """Waits until a turn's tile has been copied, and gives it; with `part`, this agent's share of its rows.

    Rows are shared evenly, those of agent 0 first. It is there until it is released.
    """

    name = "pipe.take"
    ring = operand_def(AnyRing)
    cursor = operand_def(AnyCursor)
    part = opt_prop_def(UnitAttr)
    result = result_def(AnyTile)
    traits = traits_def(HasEffects())
    assembly_format = (
        "(`part` $part^)? $ring `[` $cursor `]` attr-dict `:` type($ring) `,` type($cursor) `->` type($result)"
    )

    def __init__(self, ring: SSAValue, cursor: SSAValue, agents: int | None = None) -> None:
        """Of `agents`, if rows are shared by so many."""
        held = slot_type(ring)
        shape = list(held.get_shape())
        if agents is not None:
            shape[0] //= agents
        super().__init__(
            operands=[ring, cursor],
            properties={"part": None if agents is None else UnitAttr()},
            result_types=[TensorType(held.element_type, shape)],
        )

    def verify_(self) -> None:
        check_cursor(self.ring, self.cursor)
        if not computes(self):
            raise VerifyException("the agent that copies does not look at what it has copied")
        held, made = slot_type(self.ring), tile_type(self.result)
        if self.part is None:
            if made != held:
                raise VerifyException(f"a ring of {held} does not hold {made}")
            return
        agents = roles_around(self).agents.value.data
        rows, others = made.get_shape()[:1], made.get_shape()[1:]
        if not rows or TensorType(made.element_type, [agents * rows[0], *others]) != held:
            raise VerifyException(f"{agents} of {made} are not {held}")

    def effects(self) -> AbstractSet[EffectInstance]:
        return {reads(MEMORY, self.ring)}


@irdl_op_definition
class ReleaseOp(IRDLOperation):
    """This agent has used up what it took."""

    name = "pipe.release"
    ring = operand_def(AnyRing)
    cursor = operand_def(AnyCursor)
    traits = traits_def(HasEffects())
    assembly_format = "$ring `[` $cursor `]` attr-dict `:` type($ring) `,` type($cursor)"

    def __init__(self, ring: SSAValue, cursor: SSAValue) -> None:
        super().__init__(operands=[ring, cursor])

    def verify_(self) -> None:
        check_cursor(self.ring, self.cursor)
        if not computes(self):
            raise VerifyException("the agent that copies takes nothing, and has nothing to release")

    def effects(self) -> AbstractSet[EffectInstance]:
        return {reads(MEMORY, self.ring), writes(MEMORY, self.ring)}


# Products


@irdl_op_definition
class DotStartOp(IRDLOperation):
    """Begins a product, `c + a · b`; it may go on from sums that are not finished yet.

    What it reads out of rings may be released only when it has been awaited.
    """

    name = "pipe.dot_start"
    a = operand_def(AnyTile)
    b = operand_def(AnyTile)
    c = operand_def(_AnySums)
    result = result_def(AnyPending)
    traits = traits_def(HasEffects())
    assembly_format = "$a `,` $b `,` $c attr-dict `:` type($a) `,` type($b) `,` type($c) `->` type($result)"

    def __init__(self, a: SSAValue, b: SSAValue, c: SSAValue) -> None:
        super().__init__(operands=[a, b, c], result_types=[PendingType(sums_type(c))])

    def verify_(self) -> None:
        if not computes(self):
            raise VerifyException("the agent that copies does not multiply")
        a, b, c = check_tile(self.a, "a factor"), check_tile(self.b, "a factor"), sums_type(self.c)
        if sums_type(self.result) != c:
            raise VerifyException(f"sums of {c} are not {sums_type(self.result)}")
        match a.get_shape(), b.get_shape(), c.get_shape():
            case (m, k), (k2, n), (m2, n2) if (m, k, n) == (m2, k2, n2):
                pass
            case _:
                raise VerifyException(f"the product of {a} and {b} is not {c}: expected [M, K], [K, N] and [M, N]")
        left, right, total = (dtype_of(tile.element_type) for tile in (a, b, c))
        if left is not right or left.kind is not total.kind or total.bits < left.bits:
            raise VerifyException(
                f"{left} times {right} into {total}: expected equal factors and sums of their kind, no narrower"
            )

    def effects(self) -> AbstractSet[EffectInstance]:
        return {reads(MEMORY), writes(MEMORY)}


@irdl_op_definition
class DotAwaitOp(IRDLOperation):
    """Waits for a product; `younger` ones that were begun behind it may still run."""

    name = "pipe.dot_await"
    pending = operand_def(AnyPending)
    younger = prop_def(IntegerConstraint)
    result = result_def(AnyTile)
    traits = traits_def(HasEffects())
    assembly_format = "$pending `younger` $younger attr-dict `:` type($pending) `->` type($result)"

    def __init__(self, pending: SSAValue, younger: int) -> None:
        super().__init__(
            operands=[pending], properties={"younger": integer(younger)}, result_types=[sums_type(pending)]
        )

    def verify_(self) -> None:
        if tile_type(self.result) != sums_type(self.pending):
            raise VerifyException(f"{self.pending.type} becomes {sums_type(self.pending)}, not {self.result.type}")
        _check_younger(self)

    def effects(self) -> AbstractSet[EffectInstance]:
        return {reads(MEMORY), writes(MEMORY)}


@irdl_op_definition
class DotsBehindOp(IRDLOperation):
    """Waits until at most `younger` products run: what older ones have read may be released."""

    name = "pipe.dots_behind"
    younger = prop_def(IntegerConstraint)
    traits = traits_def(HasEffects())
    assembly_format = "$younger attr-dict"

    def __init__(self, younger: int) -> None:
        super().__init__(properties={"younger": integer(younger)})

    def verify_(self) -> None:
        _check_younger(self)

    def effects(self) -> AbstractSet[EffectInstance]:
        return {reads(MEMORY), writes(MEMORY)}


OPS: tuple[type[IRDLOperation], ...] = (
    RolesOp,
    AgentOp,
    WorkerOp,
    WorkersOp,
    ExtentOp,
    CursorOp,
    NextOp,
    FillOp,
    TakeOp,
    ReleaseOp,
    DotStartOp,
    DotAwaitOp,
    DotsBehindOp,
)
TYPES: tuple[type[ParametrizedAttribute], ...] = (CursorType, MailboxType, PendingType)
