"""nv level → LLVM text, sm_90a: dots of warpgroups, waiting for them, and work on their accumulators.

A group of dots is one block of inline PTX with its fence and its commit, and a wait is one through which the
accumulators go, so that the order of values keeps ops from reading accumulators too early, and the assembler from
waiting in between.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.targets.cuda.emit.emitter import Emitter, Shared, emits
from tessera.targets.cuda.emit.hopper import do
from tessera.targets.cuda.emit.reductions import fold_registers
from tessera.targets.cuda.emit.thread_tiles import ThreadTile, part_of
from tessera.targets.cuda.ir import wgmma
from tessera.targets.cuda.ir.dialect import SlotOp
from tessera.targets.cuda.ir.hopper_copies import RecastOp
from tessera.targets.cuda.ir.tensor_cores import WGMMA_TYPES, depth_step, transposes_in_memory
from tessera.targets.cuda.ir.types import SharedType, layout_of, shared_type
from tessera.targets.cuda.ptx.inline import asm
from tessera.targets.llvm import elementwise
from tessera.targets.llvm.elements import register_type
from tessera.targets.llvm.literals import folded
from tessera.targets.llvm.text import Value, number

_SWIZZLED = 1 << 62
_ADDRESS = (1 << 14) - 1
_ROWS_APART = 1024
"""Bytes between groups of 8 rows of a panel."""


def _descriptor(emitter: Emitter, value: SSAValue, next_panel: int | Value) -> Value:
    """How a dot sees a tile in shared memory. `next_panel` is where it goes on behind the columns of a panel, if it
    goes across them: so many bytes further, or at an address.

    The number of a slot is added last and in 64 bits: what is before it does not change in a loop, and the assembler
    has one instruction for such additions.
    """
    f, owner = emitter.f, value.owner
    if isinstance(owner, SlotOp):
        # To an address that stays, the way becomes shorter with each slot.
        units = shared_type(value).size >> 4
        units -= 0 if isinstance(next_panel, int) else units << 16
        slot = f.convert("zext", emitter.number(owner.number), "i64")
        further = folded(f, "mul", slot, units)
        return f.binary("add", _descriptor(emitter, owner.ring, next_panel), further)
    if isinstance(owner, RecastOp):
        return _descriptor(emitter, owner.shared, next_panel)
    address = emitter.memory(value).address
    # In a cluster, addresses have the block's rank above the bits that count here.
    low = f.binary("and", f.binary("lshr", address, 4), _ADDRESS)
    fixed = _SWIZZLED | (_ROWS_APART >> 4) << 32
    if isinstance(next_panel, int):
        fixed |= (next_panel >> 4) << 16
    else:
        apart = f.binary("lshr", f.binary("sub", next_panel, address), 4)
        low = f.binary("or", low, f.binary("shl", apart, 16))
    return f.binary("or", f.convert("zext", low, "i64"), fixed)


def _along(type_: SharedType, step: int) -> int:
    """Where a step of the depth begins in a tile whose columns are the depth, in units of 16 bytes."""
    panel, inside = divmod(step, 4)
    return panel * (type_.panel_bytes >> 4) + inside * 2


def _down(step: int) -> int:
    """The same in a tile whose rows are the depth, 16 of them in a step."""
    return step * (16 * wgmma.PANEL >> 4)


@emits(wgmma.WgmmaOp)
def _wgmma(emitter: Emitter, op: wgmma.WgmmaOp) -> None:
    columns = tile_type(op.result).get_shape()[1]
    count = layout_of(op.result).count
    before = emitter.tile(op.sum).elements() if op.sum is not None else []
    right = emitter.memory(op.b)
    inputs: list[Value] = []
    left = emitter.values[op.a]
    if isinstance(left, Shared):
        depth = left.type.columns if op.across is None else left.type.rows
        inputs.append(_descriptor(emitter, op.a, 16))
    else:
        depth = left.shape[1]
        inputs += _register_words(emitter, left)
    inputs.append(_descriptor(emitter, op.b, _next_panel(emitter, op, right)))
    # Operands of inline PTX: results, the accumulators that go into them, then what is read.
    first = count + len(before)
    dtype, total = right.type.dtype, tile_dtype(op.result)
    from_left = left.type.dtype if isinstance(left, Shared) else left.dtype
    types, deep = WGMMA_TYPES[from_left.base, dtype.base, total.base], depth_step(dtype)
    # Floats may have their signs changed, and what has 16 bits may be transposed.
    marks = "" if total.is_integer else ", 1, 1"
    if transposes_in_memory(dtype):
        marks += (
            f"{f', {0 if op.across is None else 1}' if isinstance(left, Shared) else ''}, {0 if op.transposed else 1}"
        )
    accumulators = "{" + ", ".join(f"${index}" for index in range(count)) + "}"
    lines = ["{ .reg .b64 a, b; wgmma.fence.sync.aligned;"]
    for step in range(depth // deep):
        along = _along(right.type, step) if op.transposed else _down(step)
        lines.append(f"add.s64 b, ${first + len(inputs) - 1}, {along};")
        if isinstance(left, Shared):
            further = _along(left.type, step) if op.across is None else _down(step)
            lines.append(f"add.s64 a, ${first}, {further};")
            a = "a"
        else:
            a = "{" + ", ".join(f"${first + 4 * step + index}" for index in range(4)) + "}"
        lines.append(
            f"wgmma.mma_async.sync.aligned.m64n{columns}k{deep}.{types} "
            f"{accumulators}, {a}, b, {int(bool(before) or step > 0)}{marks};"
        )
    lines.append("wgmma.commit_group.sync.aligned; }")
    found = asm(
        emitter.f,
        "\n".join(lines),
        returns=[register_type(total)] * count,
        arguments=[*before, *inputs],
        effects=True,
        convergent=True,
        tied=len(before),
        early=not before,
    )
    emitter.bind(op.result, found)


def _register_words(emitter: Emitter, left: ThreadTile) -> list[Value]:
    """A left operand in registers of 32 bits."""
    if left.packs:
        return left.words()
    return [emitter.f.convert("bitcast", element, "i32") for element in left.elements()]


def _next_panel(emitter: Emitter, op: wgmma.WgmmaOp, right: Shared) -> int | Value:
    """Where the right operand's columns go on behind its first 64, if its columns are those of the dot."""
    if op.transposed is not None:
        return 16
    return right.type.panel_bytes if op.beside is None else emitter.memory(op.beside).address


@emits(wgmma.WgmmaWaitOp)
def _wgmma_wait(emitter: Emitter, op: wgmma.WgmmaWaitOp) -> None:
    text = f"wgmma.wait_group.sync.aligned {op.pending.value.data};"
    values = [value for tile in op.values for value in emitter.tile(tile).elements()]
    kept = [value for tile in op.kept for value in emitter.tile(tile).flat()]
    if not values:
        do(emitter, text, *kept)
        return
    found = asm(
        emitter.f,
        text,
        returns=[value.type for value in values],
        arguments=[*values, *kept],
        effects=True,
        convergent=True,
        tied=len(values),
    )
    emitter.bind_carried(op.handed, found)


@emits(wgmma.StmatrixOp)
def _store_matrix(emitter: Emitter, op: wgmma.StmatrixOp) -> None:
    """Four 8 by 8 matrices at a time: 16 rows of 16 columns; a lane gives the address of one row of one of them."""
    f, there = emitter.f, emitter.memory(op.shared)
    if there.type.itemsize == 1:
        _store_bytes(emitter, op, there)
        return
    words, first = emitter.tile(op.value).words(), op.column.value.data
    row = f.binary("and", emitter.lane, 15)
    if there.type.rows == wgmma.ROWS:
        warp = f.binary("and", emitter.warp, 3)
        row = f.binary("add", row, f.binary("shl", warp, 4))
    start = f.binary("add", there.address, f.binary("shl", row, 7))
    swizzle = f.binary("and", emitter.lane, 7)
    half = f.binary("lshr", emitter.lane, 4)
    for chunk in range(0, there.type.columns // 8, 2):
        panel, inside = divmod(chunk, 8)
        swizzled = f.binary("xor", f.add(half, inside), swizzle)
        address = f.binary("add", start, f.binary("shl", swizzled, 4))
        address = f.add(address, panel * there.type.panel_bytes)
        index = 2 * (first // 8 + chunk)
        do(
            emitter,
            "stmatrix.sync.aligned.m8n8.x4.shared.b16 [$0], {$1, $2, $3, $4};",
            address,
            *words[index : index + 4],
        )


def _store_bytes(emitter: Emitter, op: wgmma.StmatrixOp, there: Shared) -> None:
    """Two bytes at a time: a thread has two neighbours of a row, and of the row that is 8 further."""
    f, words = emitter.f, emitter.tile(op.value).words()
    row, pair = f.binary("lshr", emitter.lane, 2), f.binary("and", emitter.lane, 3)
    down = row
    if there.type.rows == wgmma.ROWS:
        down = f.binary("add", row, f.binary("shl", f.binary("and", emitter.warp, 3), 4))
    start = f.binary("add", there.address, f.binary("shl", down, 7))
    start = f.binary("add", start, f.binary("shl", pair, 1))
    for group in range(there.type.columns // wgmma.COLUMN_STEP):
        panel, inside = divmod(group, wgmma.PANEL // wgmma.COLUMN_STEP)
        swizzled = f.binary("shl", f.binary("xor", row, inside // 2), 4)
        address = f.binary("add", start, swizzled)
        further = panel * there.type.panel_bytes + inside % 2 * wgmma.COLUMN_STEP
        word = words[op.column.value.data // wgmma.COLUMN_STEP + group]
        for half in range(2):
            do(emitter, f"st.shared.b16 [$0+{further + half * 1024}], $1;", address, part_of(f, word, half, 16))


@emits(wgmma.ColumnsOp)
def _columns(emitter: Emitter, op: wgmma.ColumnsOp) -> None:
    source, first = emitter.tile(op.operand), op.first.value.data // 8 * 4
    count = layout_of(op.result).count
    if source.packs:
        emitter.bind(op.result, words=source.words()[first // 2 : (first + count) // 2])
    else:
        emitter.bind(op.result, source.elements()[first : first + count])


@emits(wgmma.JoinOp)
def _join(emitter: Emitter, op: wgmma.JoinOp) -> None:
    pieces = [emitter.tile(piece) for piece in op.pieces]
    if all(piece.packs for piece in pieces):
        emitter.bind(op.result, words=[word for piece in pieces for word in piece.words()])
    else:
        emitter.bind(op.result, [element for piece in pieces for element in piece.elements()])


@emits(wgmma.PartialOp)
def _partial(emitter: Emitter, op: wgmma.PartialOp) -> None:
    source, kind = emitter.tile(op.operand), op.kind.data

    def combine(a: Value, b: Value) -> Value:
        if kind == "top" and a.type == "float":
            # It may miss a NaN: one instruction.
            return emitter.f.intrinsic("maxnum", a, b)
        return elementwise.combine(emitter.f, kind, a, b, source.dtype, emitter.level)

    neutral = elementwise.identity(kind, source.dtype)
    emitter.bind(op.result, fold_registers(emitter, source, op.axis.value.data, neutral, combine))


@emits(wgmma.AnyOp)
def _any(emitter: Emitter, op: wgmma.AnyOp) -> None:
    f = emitter.f
    found, *others = emitter.tile(op.operand).elements()
    for other in others:
        found = f.binary("or", found, other)
    emitter.values[op.result] = f.call("llvm.nvvm.vote.any.sync", "i1", [number(-1, "i32"), found])
