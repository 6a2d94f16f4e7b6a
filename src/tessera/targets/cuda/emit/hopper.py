"""nv level → LLVM text, sm_90a: roles, barriers, copies by tensor maps, clusters, and what schedulers keep."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from tessera.targets.cuda.emit.emitter import Emitter, Shared, emits
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.ir import hopper, hopper_copies
from tessera.targets.cuda.ir.hopper_types import barriers_type
from tessera.targets.cuda.ir.types import shared_type
from tessera.targets.cuda.ptx.inline import asm, barrier, predicated
from tessera.targets.llvm.literals import folded
from tessera.targets.llvm.scalars import integer_rule
from tessera.targets.llvm.text import Value, number

BARRIER_BYTES, WORD_BYTES = 8, 4


def do(emitter: Emitter, text: str, *arguments: Value) -> None:
    """An instruction that all accesses to memory stay on their side of."""
    asm(emitter.f, text, arguments=arguments, effects=True, convergent=True)


def get(emitter: Emitter, text: str, *arguments: Value) -> Value:
    """The same, with a result of 32 bits."""
    return asm(emitter.f, text, returns=["i32"], arguments=arguments, effects=True, convergent=True)[0]


def _do_where(emitter: Emitter, text: str, arguments: Sequence[Value], condition: SSAValue | None) -> None:
    """An instruction that is done, without a branch, only where a condition holds."""
    text, arguments = predicated(emitter.f, text, arguments, None if condition is None else emitter.number(condition))
    do(emitter, text, *arguments)


# Unsigned numbers, and loops that test at their end


_UNSIGNED = {arith.DivUIOp: "udiv", arith.RemUIOp: "urem", arith.ShLIOp: "shl", arith.ShRUIOp: "lshr"}


for _kind, _opcode in _UNSIGNED.items():
    emits(_kind)(integer_rule(_opcode))


@emits(arith.ExtUIOp)
def _extend(emitter: Emitter, op: arith.ExtUIOp) -> None:
    width = op.result.type
    emitter.values[op.result] = emitter.f.convert("zext", emitter.number(op.input), str(width))


# Who is who


_IDS: dict[str, Callable[[Emitter], Value]] = {
    "thread": lambda emitter: emitter.thread,
    "lane": lambda emitter: emitter.lane,
    "warp": lambda emitter: emitter.warp,
    "warpgroup": lambda emitter: _uniform(emitter, emitter.f.binary("lshr", emitter.thread, 7)),
    "block": lambda emitter: emitter.sreg("ctaid.x"),
    "blocks": lambda emitter: emitter.sreg("nctaid.x"),
    "rank": lambda emitter: emitter.sreg("cluster.ctarank"),
}


def _uniform(emitter: Emitter, value: Value) -> Value:
    """The first lane's value in all lanes, so that the assembler knows it to be one for the warp."""
    return get(emitter, "shfl.sync.idx.b32 $0, $1, 0, 31, -1;", value)


@emits(hopper.IdOp)
def _id(emitter: Emitter, op: hopper.IdOp) -> None:
    emitter.values[op.result] = _IDS[op.kind.data](emitter)


@emits(hopper.ExtentOp)
def _extent(emitter: Emitter, op: hopper.ExtentOp) -> None:
    word = emitter.param(emitter.block_layout.grid + op.axis.value.data)
    emitter.values[op.result] = emitter.f.convert("trunc", word, "i32")


@emits(hopper.SetmaxnregOp)
def _set_registers(emitter: Emitter, op: hopper.SetmaxnregOp) -> None:
    do(emitter, f"setmaxnreg.{op.direction.data}.sync.aligned.u32 {op.count.value.data};")


@emits(hopper.AdvanceOp)
def _advance(emitter: Emitter, op: hopper.AdvanceOp) -> None:
    f = emitter.f
    following = f.add(emitter.number(op.slot), 1)
    wraps = f.compare("eq", following, op.depth.value.data)
    emitter.values[op.next_slot] = f.select(wraps, number(0, "i32"), following)
    emitter.values[op.next_phase] = f.binary("xor", emitter.number(op.phase), f.convert("zext", wraps, "i32"))


# Barriers


@emits(hopper.MbarriersOp)
def _barriers(emitter: Emitter, op: hopper.MbarriersOp) -> None:
    emitter.values[op.result] = emitter.shared(emitter.shared_offset(op))


def _element_address(emitter: Emitter, array: SSAValue, number_: SSAValue, size: int) -> Value:
    """The address of one of several things side by side."""
    f = emitter.f
    return f.binary("add", emitter.number(array), folded(f, "mul", emitter.number(number_), size))


@emits(hopper.MbarrierInitOp)
def _init(emitter: Emitter, op: hopper.MbarrierInitOp) -> None:
    first = emitter.number(op.barriers)
    for index in range(barriers_type(op.barriers).count.data):
        address = emitter.f.add(first, BARRIER_BYTES * index)
        do(emitter, f"mbarrier.init.shared::cta.b64 [$0], {op.arrivals.value.data};", address)


_WAIT = "{ .reg .pred p; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [$0], $1; @!p bra AGAIN; }"


@emits(hopper.MbarrierWaitOp)
def _wait(emitter: Emitter, op: hopper.MbarrierWaitOp) -> None:
    do(emitter, _WAIT, _element_address(emitter, op.barriers, op.number, BARRIER_BYTES), emitter.number(op.parity))


@emits(hopper.MbarrierArriveOp)
def _arrive(emitter: Emitter, op: hopper.MbarrierArriveOp) -> None:
    address = _element_address(emitter, op.barriers, op.number, BARRIER_BYTES)
    # Not .release.cluster for other blocks: that is a fence of the whole GPU, and what was read needs none.
    space = "shared::cta" if barriers_type(op.barriers).scope.data == "block" else "shared::cluster"
    arrive = f"mbarrier.arrive.{space}.b64 _, [$0];"
    _do_where(emitter, arrive, [address], op.condition)


@emits(hopper.MbarrierExpectOp)
def _expect(emitter: Emitter, op: hopper.MbarrierExpectOp) -> None:
    address = _element_address(emitter, op.barriers, op.number, BARRIER_BYTES)
    do(emitter, f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], {op.bytes.value.data};", address)


_FENCES = {"init": "fence.mbarrier_init.release.cluster;", "async": "fence.proxy.async.shared::cta;"}


@emits(hopper.FenceOp)
def _fence(emitter: Emitter, op: hopper.FenceOp) -> None:
    do(emitter, _FENCES[op.kind.data])


@emits(nv.BarrierOp)
def _barrier(emitter: Emitter, op: nv.BarrierOp) -> None:
    barrier(emitter.f)


@emits(nv.GriddepcontrolWaitOp)
def _follow(emitter: Emitter, op: nv.GriddepcontrolWaitOp) -> None:
    if emitter.follows:
        # The next kernel is let in as soon as this one has asked for what it may read early. It waits for this one to
        # end, and this one for those in front. Let in even earlier, it slowed reads down on an H200.
        do(emitter, "griddepcontrol.launch_dependents;")
        do(emitter, "griddepcontrol.wait;")


@emits(hopper.BarrierSyncOp)
def _sync(emitter: Emitter, op: hopper.BarrierSyncOp) -> None:
    do(emitter, f"bar.sync $0, {op.threads.value.data};", emitter.number(op.number))


@emits(hopper.BarrierArriveOp)
def _announce(emitter: Emitter, op: hopper.BarrierArriveOp) -> None:
    do(emitter, f"bar.arrive $0, {op.threads.value.data};", emitter.number(op.number))


@emits(hopper.WarpSyncOp)
def _warp_sync(emitter: Emitter, op: hopper.WarpSyncOp) -> None:
    do(emitter, "bar.warp.sync -1;")


@emits(hopper.ClusterSyncOp)
def _cluster_sync(emitter: Emitter, op: hopper.ClusterSyncOp) -> None:
    aligned = ".aligned" if op.aligned is not None else ""
    do(emitter, f"barrier.cluster.arrive.release{aligned};")
    do(emitter, f"barrier.cluster.wait.acquire{aligned};")


@emits(hopper.MapaOp)
def _elsewhere(emitter: Emitter, op: hopper.MapaOp) -> None:
    here, rank = emitter.number(op.barriers), emitter.number(op.rank)
    emitter.values[op.result] = get(emitter, "mapa.shared::cluster.u32 $0, $1, $2;", here, rank)


# Copies


@emits(hopper_copies.TensorMapOp)
def _tensor_map(emitter: Emitter, op: hopper_copies.TensorMapOp) -> None:
    emitter.values[op.result] = emitter.f.at(emitter.params, emitter.map_offset(op))


@emits(hopper_copies.PrefetchOp)
def _prefetch(emitter: Emitter, op: hopper_copies.PrefetchOp) -> None:
    do(emitter, "prefetch.tensormap [$0];", emitter.number(op.map))


def _coordinates(count: int, first: int) -> str:
    return "{" + ", ".join(f"${first + index}" for index in range(count)) + "}"


@emits(hopper_copies.TmaLoadOp)
def _copy_in(emitter: Emitter, op: hopper_copies.TmaLoadOp) -> None:
    axes = len(op.offsets)
    shared, map_ = emitter.memory(op.shared).address, emitter.number(op.map)
    barrier = _element_address(emitter, op.barriers, op.number, BARRIER_BYTES)
    arguments = [shared, map_, *(emitter.number(offset) for offset in op.offsets), barrier]
    if op.row is not None:
        further = folded(emitter.f, "mul", emitter.number(op.row), shared_type(op.shared).panel.data)
        arguments[0] = folded(emitter.f, "add", shared, further)
    far, mask = "", ""
    if op.multicast is not None:
        arguments.append(emitter.f.convert("trunc", emitter.number(op.multicast), "i16"))
        far, mask = ".multicast::cluster", f", ${axes + 3}"
    do(
        emitter,
        f"cp.async.bulk.tensor.{axes}d.shared::cluster.global.mbarrier::complete_tx::bytes{far} "
        f"[$0], [$1, {_coordinates(axes, 2)}], [${axes + 2}]{mask};",
        *arguments,
    )


@emits(hopper_copies.TmaStoreOp)
def _copy_out(emitter: Emitter, op: hopper_copies.TmaStoreOp) -> None:
    axes = len(op.offsets)
    shared, map_ = emitter.memory(op.shared).address, emitter.number(op.map)
    arguments = [shared, map_, *(emitter.number(offset) for offset in op.offsets)]
    copy = f"cp.async.bulk.tensor.{axes}d.global.shared::cta.bulk_group [$1, {_coordinates(axes, 2)}], [$0];"
    _do_where(emitter, copy, arguments, op.condition)


@emits(hopper_copies.TmaCommitOp)
def _commit_copies(emitter: Emitter, op: hopper_copies.TmaCommitOp) -> None:
    do(emitter, "cp.async.bulk.commit_group;")


@emits(hopper_copies.TmaWaitOp)
def _wait_copies(emitter: Emitter, op: hopper_copies.TmaWaitOp) -> None:
    read = ".read" if op.read is not None else ""
    do(emitter, f"cp.async.bulk.wait_group{read} {op.pending.value.data};")


@emits(hopper_copies.RecastOp)
def _recast(emitter: Emitter, op: hopper_copies.RecastOp) -> None:
    emitter.values[op.result] = Shared(emitter.memory(op.shared).address, shared_type(op.result))


# Schedulers


@emits(hopper.WordsOp)
def _words(emitter: Emitter, op: hopper.WordsOp) -> None:
    emitter.values[op.result] = emitter.shared(emitter.shared_offset(op))


@emits(hopper.PutOp)
def _put(emitter: Emitter, op: hopper.PutOp) -> None:
    do(
        emitter,
        "st.shared.b32 [$0], $1;",
        _element_address(emitter, op.words, op.number, WORD_BYTES),
        emitter.number(op.value),
    )


@emits(hopper.GetOp)
def _get(emitter: Emitter, op: hopper.GetOp) -> None:
    emitter.values[op.result] = get(
        emitter, "ld.shared.b32 $0, [$1];", _element_address(emitter, op.words, op.number, WORD_BYTES)
    )


def _counter(emitter: Emitter, number_: int) -> Value:
    """The address of a counter."""
    return emitter.f.at(emitter.global_address(emitter.block_layout.counters), WORD_BYTES * number_)


@emits(hopper.CountOp)
def _count(emitter: Emitter, op: hopper.CountOp) -> None:
    counter = _counter(emitter, op.counter.value.data)
    emitter.values[op.result] = get(emitter, "atom.global.add.u32 $0, [$1], $2;", counter, emitter.number(op.amount))


@emits(hopper.ResetOp)
def _reset(emitter: Emitter, op: hopper.ResetOp) -> None:
    do(emitter, "st.global.u32 [$0], $1;", _counter(emitter, op.counter.value.data), number(0, "i32"))
