"""The frame of the nv emitter: one table from op to rule, and one kernel with one parameter.

The parameter is a block of words: for a view its address, sizes and strides, for a number the number, then the grid's
extents; tensor maps lie behind them. `EmittedBlock` says which word is what. The grid of blocks has one axis.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import IntegerAttr, TensorType
from xdsl.ir import Block as OpBlock
from xdsl.ir import BlockArgument, Operation, SSAValue

from tessera.ir.common.attributes import SizesAttr
from tessera.ir.common.elements import dtype_of
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import ViewType, tile_dtype, tile_type
from tessera.targets.cuda.emit.divisors import aligned_axis
from tessera.targets.cuda.emit.thread_tiles import Affine, Question, ThreadTile
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.ir.hopper import IdOp, MbarriersOp, WordsOp
from tessera.targets.cuda.ir.hopper_copies import TensorMapOp
from tessera.targets.cuda.ir.layouts import WARP, Digit, Layout
from tessera.targets.cuda.ir.types import SharedType, layout_of
from tessera.targets.cuda.ptx.inline import asm, barrier
from tessera.targets.llvm import elements, rules
from tessera.targets.llvm.emitter import KernelEmitter, RuleTable, ViewDescriptor, argument_words, is_tile, some
from tessera.targets.llvm.text import Module, Value, number

WORD = 8
WARPGROUP = 128
FIRST_MEETING = 8
"""The named barrier at which the threads of warp group 0 meet; those of other warp groups follow."""
SCRATCH_ALIGN = 16
MAP_BYTES = 128
GLOBAL = "ptr addrspace(1)"
SHARED = "ptr addrspace(3)"

RULES: RuleTable[Emitter] = RuleTable({**rules.PLAIN, **rules.RULES})
emits = RULES.emits
PROLOGUES: list[Callable[[Emitter], None]] = []
"""Writers of code in front of a kernel's own ops."""


@dataclass(frozen=True)
class Shared:
    """A tile, or several, in shared memory: the address of its first byte."""

    address: Value
    type: SharedType


@dataclass(frozen=True)
class EmittedBlock:
    """Words of the parameter: where each argument begins, the grid's extents, the report's address."""

    first: Sequence[int]
    grid: int
    report: int
    counters: int
    words: int
    maps: Sequence[int]
    """Bytes at which tensor maps begin."""
    size: int


@dataclass(frozen=True)
class Emitted:
    """The text, and what a launcher has to know."""

    text: str
    block: EmittedBlock
    shared: int
    messages: tuple[str, ...]
    """The error message for status 1, 2, …"""


class Emitter(KernelEmitter):
    """Writes one kernel."""

    machines = "GPUs"
    rules = RULES
    level = "avx2"
    """The level for tables of scalar functions, which all targets share: products and sums fuse, and
    half precision converts."""

    def __init__(self, function: nv.FuncOp, arch: str = "sm_90a") -> None:
        super().__init__(Module())
        self.source = function
        self.arch = arch
        self.maps = [op for op in function.body.walk() if isinstance(op, TensorMapOp)]
        self.cooperating = cooperating_threads(function)
        """How many threads have tiles of their own: those of the block, or where warpgroups have roles, of one."""
        self.block_layout = _block(function, len(self.maps))
        self.scopes = [0]
        self._scope_count = 0
        self._notes: dict[Hashable, tuple[int, Value]] = {}
        self._bases: dict[tuple[tuple[Digit, ...], int], Value] = {}
        self._shared_offsets, self._scratch_at = _shared_offsets(function)
        self._scratch = 0
        # Behind the last op that uses tiles in shared memory, their room is free for others.
        self._last_of_tiles = _last_of_tiles(function)
        self._late: int | None = None

    def emit(self) -> Emitted:
        function, name = self.source, self.source.sym_name.data
        self.module.define("shared", f"external addrspace(3) global [0 x i8], align {1024}")
        least = function.attributes.get("blocks")
        attributes = f'"nvvm.maxntid"="{function.thread_count}"'
        if isinstance(least, IntegerAttr):
            attributes += f' "nvvm.minctasm"="{least.value.data}"'
        cluster = function.attributes.get("cluster")
        if isinstance(cluster, IntegerAttr) and cluster.value.data > 1:
            attributes += f' "nvvm.cluster_dim"="{cluster.value.data},1,1"'
        size = self.block_layout.size
        self.f = self.module.function(
            name,
            [(f'ptr byval([{size} x i8]) align 64 "nvvm.grid_constant"', "params")],
            returns="ptx_kernel void",
            internal=False,
            attributes=attributes,
        )
        (self.params,) = self.f.arguments
        self.thread = self.sreg("tid.x")
        self.lane = self.f.binary("and", self.thread, WARP - 1)
        self.warp = self.f.binary("lshr", self.thread, 5)
        self._bind_arguments()
        self._bind_bases()
        for prologue in PROLOGUES:
            prologue(self)
        self.block(function.body.block)
        self.f.give()
        shared = max(self._scratch_at + self._scratch, self._late or 0)
        return Emitted(self.module.text(), self.block_layout, shared, tuple(self.messages))

    # What the hardware knows

    @property
    def follows(self) -> bool:
        """Whether the kernel waits by itself for those in front of it, on machines that know of such."""
        return self.machine >= 90 and any(op.name == "nv.griddepcontrol_wait" for op in self.source.body.block.ops)

    @property
    def machine(self) -> int:
        """The number of the machine: 80, 89, 90."""
        return int(self.arch.removeprefix("sm_").rstrip("a"))

    def sreg(self, name: str) -> Value:
        """A special register: tid.x, ctaid.x, …"""
        return self.f.call(f"llvm.nvvm.read.ptx.sreg.{name}", "i32", [])

    def param(self, word: int, type_: str = "i64") -> Value:
        """A word of the parameter."""
        return self.f.load(type_, self.f.at(self.params, WORD * word), align=8)

    def shared(self, offset: int) -> Value:
        """The address of a byte of shared memory."""
        base = self.f.op("i32", "ptrtoint ptr addrspace(3) @shared to i32")
        return self.f.add(base, offset)

    def scratch(self, size: int) -> Value:
        """The address of shared memory that the current op may use; what is in it is of no use to the next."""
        if self._late is not None:
            self._late = max(self._late, size)
            return self.shared(0)
        groups = self.source.thread_count // self.cooperating
        if groups > 1:
            size = -(-size // SCRATCH_ALIGN) * SCRATCH_ALIGN
        self._scratch = max(self._scratch, size * groups)
        first = self.shared(self._scratch_at)
        # Each warp group has its own.
        return first if groups == 1 else self.f.add(first, self.f.times(self._group(), size))

    def _group(self) -> Value:
        """The number of the warp group."""
        return self.f.binary("lshr", self.thread, WARPGROUP.bit_length() - 1)

    def meet(self) -> None:
        """All threads that share tiles wait for each other, and see each other's memory."""
        if self.cooperating == self.source.thread_count:
            barrier(self.f)
            return
        number_ = self.f.binary("add", self._group(), FIRST_MEETING)
        text = f"bar.sync $0, {self.cooperating};"
        asm(self.f, text, arguments=[number_], effects=True, convergent=True)

    def shared_pointer(self, size: int) -> Value:
        """The same as a pointer."""
        return self.f.op(SHARED, f"inttoptr {self.scratch(size)} to {SHARED}")

    def base(self, layout: Layout, axis: int) -> Value:
        """The part of coordinates along an axis that depends on the thread, as i32."""
        return self._bases[layout.threads, axis]

    # Arguments

    def _bind_arguments(self) -> None:
        shapes = self.source.shapes
        for argument, first, shape in zip(self.source.arguments, self.block_layout.first, shapes, strict=True):
            self.values[argument] = self._argument(argument, first, shape)

    def _argument(self, argument: BlockArgument, first: int, shape: SizesAttr) -> ViewDescriptor | Value:
        type_ = argument.type
        if isinstance(type_, ViewType):
            rank = type_.rank.data
            address = self.param(first)
            pointer = self.f.op(GLOBAL, f"inttoptr {address} to {GLOBAL}")
            # The launcher has checked the sizes of the signature.
            sizes = tuple(
                number(size, "i64") if isinstance(size, int) else self.param(first + 1 + axis)
                for axis, size in enumerate(shape.data)
            )
            strides = tuple(self.param(first + 1 + rank + axis) for axis in range(rank))
            if rank and (rows := aligned_axis(argument)) is not None:
                strides = (*strides[:rows], number(1, "i64"), *strides[rows + 1 :])
            return ViewDescriptor(pointer, sizes, strides, type_.dtype)
        dtype = dtype_of(type_)
        memory = elements.memory_type(dtype, 0)
        return elements.to_register(self.f, self.param(first, memory), dtype)

    def _bind_bases(self) -> None:
        """Computes what coordinates owe to the thread, for all layouts, in front of everything."""
        for op in self.source.walk():
            arguments = [argument for region in op.regions for block in region.blocks for argument in block.args]
            for value in (*op.results, *arguments):
                if isinstance(value.type, TensorType):
                    self.know(layout_of(value), len(tile_type(value).get_shape()))

    def know(self, layout: Layout, rank: int) -> None:
        """Makes the thread's bases of a layout available; only in front of the kernel's own ops."""
        for axis in range(rank):
            if (layout.threads, axis) not in self._bases:
                self._bases[layout.threads, axis] = self.thread_part(layout, axis)

    def thread_part(self, layout: Layout, axis: int) -> Value:
        """The part of coordinates along an axis that depends on the thread, written here."""
        f, total = self.f, number(0, "i32")
        for digit, below in layout.positions:
            if digit.axis != axis or digit.size == 1:
                continue
            part = f.binary("udiv", self.thread, below) if below > 1 else self.thread
            # The last digit's threads are all there are.
            if below * digit.size < self.source.thread_count:
                part = f.binary("urem", part, digit.size)
            part = f.times(part, digit.step)
            total = part if total.name == "0" else f.binary("add", total, part)
        return total

    # Values

    def memory(self, value: SSAValue) -> Shared:
        return self.bound(value, Shared)

    def tile(self, value: SSAValue) -> ThreadTile:
        return self.bound(value, ThreadTile)

    def bind(
        self,
        result: SSAValue,
        elements: Sequence[Value] | None = None,
        *,
        words: Sequence[Value] | None = None,
        affine: Affine | None = None,
        questions: tuple[Question, ...] | None = None,
    ) -> None:
        """Binds a tile by its elements; by its words, if they have 8 or 16 bits; by positions, or what is asked."""
        shape, dtype, layout = tile_type(result).get_shape(), tile_dtype(result), layout_of(result)
        self.values[result] = ThreadTile(
            self, shape, dtype, layout, elements=elements, words=words, affine=affine, questions=questions
        )

    def shared_offset(self, op: Operation) -> int:
        """The offset of an allocation in shared memory."""
        return self._shared_offsets[op]

    def map_offset(self, op: TensorMapOp) -> int:
        """The offset of a tensor map in the parameter block, in bytes."""
        return self.block_layout.maps[self.maps.index(op)]

    # Ghosts and replicas

    def inside(self, layout: Layout, shape: Sequence[int]) -> list[Value | None]:
        """For each register, whether its element is one of the tile; None where it always is, however the thread."""
        found: list[Value | None] = [None] * layout.count
        for axis, size in enumerate(shape):
            reach, offsets = layout.reach(axis), layout.offsets(axis)
            known: dict[int, Value] = {}
            for register, offset in enumerate(offsets):
                if reach + offset < size:
                    continue
                if offset not in known:
                    known[offset] = self.f.compare("slt", self.base(layout, axis), size - offset)
                found[register] = self.f.all_of((found[register], known[offset]))
        return found

    def first_replica(self, layout: Layout) -> Value | None:
        """Whether this thread is the first of those that hold the same elements; None where all are."""

        def tests() -> Iterator[Value]:
            for digit, below in layout.positions:
                if digit.axis < 0 and digit.size > 1:
                    part = self.f.binary("udiv", self.thread, below)
                    yield self.f.compare("eq", self.f.binary("urem", part, digit.size), 0)
            if layout.thread_count < self.cooperating:
                yield self.f.compare("ult", self.thread, layout.thread_count)

        found = list(tests())
        return self.f.all_of(found) if found else None

    # Failures

    def record(self) -> Value:
        return self.global_address(self.block_layout.report)

    def global_address(self, word: int) -> Value:
        """The address in global memory that a word of the parameter is."""
        return self.f.op(GLOBAL, f"inttoptr {self.param(word)} to {GLOBAL}")

    def all_true(self, given: ThreadTile) -> Value | None:
        def tests() -> Iterator[Value]:
            for register, where in enumerate(self.inside(given.layout, given.shape)):
                value = given.element(register)
                yield value if where is None else self.f.binary("or", value, self.f.binary("xor", where, 1))

        return self.f.all_of(tests())

    # Blocks

    def once(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value made for a key, if it was made in a block that dominates this one; else a new one."""
        known = self._notes.get(key)
        if known is not None and known[0] in self.scopes:
            return known[1]
        found = make()
        self._notes[key] = (self.scopes[-1], found)
        return found

    @contextmanager
    def _scope(self) -> Generator[None]:
        """A part of the code of which others do not know what it makes of tiles."""
        self._scope_count += 1
        self.scopes.append(self._scope_count)
        yield
        self.scopes.pop()

    def branch(
        self,
        condition: Value,
        then: Callable[[], Sequence[Value] | None],
        otherwise: Callable[[], Sequence[Value] | None] | None = None,
    ) -> list[Value]:
        def scoped(side: Callable[[], Sequence[Value] | None]) -> Callable[[], Sequence[Value] | None]:
            def run() -> Sequence[Value] | None:
                with self._scope():
                    return side()

            return run

        return super().branch(condition, scoped(then), None if otherwise is None else scoped(otherwise))

    def block(self, block: OpBlock) -> Operation:
        with self._scope():
            return super().block(block)

    def emit_op(self, op: Operation) -> None:
        super().emit_op(op)
        if op is self._last_of_tiles:
            # Copies may be under way that were not waited for.
            asm(self.f, "cp.async.wait_group 0;", effects=True)
            self._late = 0

    def carried(self, values: Sequence[SSAValue]) -> list[Value]:
        # They are made at the end of a block that is no scope any more: nothing else may use them.
        with self._scope():
            return super().carried(values)

    def flat(self, found: Any) -> Sequence[Value]:
        if isinstance(found, ThreadTile):
            return found.flat()
        return [found.address if isinstance(found, Shared) else found]

    def of_flat(self, value: SSAValue, rest: Iterator[Value]) -> Any:
        if is_tile(value):
            shape, dtype, layout = tile_type(value).get_shape(), tile_dtype(value), layout_of(value)
            return ThreadTile.of_flat(self, shape, dtype, layout, some(ThreadTile.flat_count(dtype, layout), rest))
        return Shared(next(rest), value.type) if isinstance(value.type, SharedType) else next(rest)


def cooperating_threads(function: nv.FuncOp) -> int:
    """How many threads share a tile: those of the block, or of one warp group where these run on their own."""
    specialized = any(isinstance(op, IdOp) and op.kind.data == "warpgroup" for op in function.body.walk())
    return WARPGROUP if specialized else function.thread_count


def _block(function: nv.FuncOp, maps: int) -> EmittedBlock:
    first, grid = argument_words(function.function_type.inputs.data)
    report = grid + len(function.grid.data)
    counters, words = report + 1, report + 2
    start = -(-WORD * words // 64) * 64
    starts = [start + MAP_BYTES * index for index in range(maps)]
    return EmittedBlock(first, grid, report, counters, words, starts, start + MAP_BYTES * maps)


_THROUGH_SCRATCH = (nv.ConvertOp, tile.ReduceOp, tile.ScanOp, tile.SortOp, tile.TakeOp, tile.PrintRecordOp)
"""Ops that may move elements through shared memory of their own."""


def _last_of_tiles(function: nv.FuncOp) -> Operation | None:
    """The last op of a function that has to do with tiles in shared memory; None where warp groups share it."""
    last: Operation | None = None
    for op in function.body.block.ops:
        for inner in op.walk():
            if isinstance(inner, MbarriersOp | WordsOp):
                return None
            if any(isinstance(value.type, SharedType) for value in (*inner.operands, *inner.results)):
                last = op
    following = None if last is None else last.next_op
    while following is not None and not isinstance(following, _THROUGH_SCRATCH) and not following.regions:
        following = following.next_op
    # If nothing behind it uses that memory, no wait is needed.
    return None if following is None else last


def _shared_offsets(function: nv.FuncOp) -> tuple[dict[Operation, int], int]:
    """The offset of each allocation in shared memory, and where they end."""
    offsets: dict[Operation, int] = {}
    end = 0
    for op in function.body.walk():
        if isinstance(op, nv.AllocOp):
            assert isinstance(op.result.type, SharedType)
            offsets[op] = end
            end += op.result.type.size
    # What is small lies behind the tiles, which all begin where swizzling does.
    for op in function.body.walk():
        if isinstance(op, MbarriersOp | WordsOp):
            end = -(-end // op.shared_align) * op.shared_align
            offsets[op] = end
            end += op.shared_bytes
    return offsets, -(-end // 16) * 16
