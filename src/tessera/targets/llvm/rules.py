"""Rules of ops that all targets emit alike: loops, branches, views and asserts; those of scalars are in `scalars`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import scf
from xdsl.ir import Region

from tessera.ir.tile import dialect as tile
from tessera.targets.llvm import scalars
from tessera.targets.llvm.emitter import KernelEmitter, RuleTable, ViewDescriptor, said
from tessera.targets.llvm.literals import folded, literal
from tessera.targets.llvm.text import Value, number

PLAIN: RuleTable[KernelEmitter] = RuleTable(scalars.RULES)
"""Of ops on scalars and views; none has an effect."""
RULES: RuleTable[KernelEmitter] = RuleTable()
"""Of the others."""


@PLAIN.emits(tile.DimOp)
def _dim(emitter: KernelEmitter, op: tile.DimOp) -> None:
    emitter.values[op.result] = emitter.view(op.view).sizes[op.axis.value.data]


@PLAIN.emits(tile.StrideOp)
def _stride(emitter: KernelEmitter, op: tile.StrideOp) -> None:
    emitter.values[op.result] = emitter.view(op.view).strides[op.axis.value.data]


@PLAIN.emits(tile.ViewOp)
def emit_view(emitter: KernelEmitter, op: tile.ViewOp) -> None:
    base, f = emitter.view(op.base), emitter.f
    item = number(base.dtype.storage.itemsize, "i64")
    pointer = f.at(base.pointer, folded(f, "mul", emitter.number(op.offset), item))
    sizes = tuple(emitter.number(size) for size in op.sizes)
    strides = tuple(emitter.number(stride) for stride in op.strides)
    emitter.values[op.result] = ViewDescriptor(pointer, sizes, strides, base.dtype)


@RULES.emits(scf.ForOp)
def _for(emitter: KernelEmitter, op: scf.ForOp) -> None:
    start, stop, step = (emitter.number(value) for value in (op.lb, op.ub, op.step))
    first, last, every = literal(start), literal(stop), literal(step)
    body = op.body.block

    def run(index: Value, carried: list[Value]) -> Sequence[Value]:
        emitter.values[body.args[0]] = index
        emitter.bind_carried(body.args[1:], carried)
        return emitter.yielded(body)

    initial = emitter.carried(op.iter_args)
    runs = first is not None and last is not None and first < last
    if runs and every is not None and first is not None and last is not None and first + every >= last:
        found = run(start, initial)
    else:
        found = emitter.f.loop(start, stop, step, initial, run, runs=runs)
    emitter.bind_carried(op.results, found)


@RULES.emits(scf.WhileOp)
def _while(emitter: KernelEmitter, op: scf.WhileOp) -> None:
    test, body = op.before_region.block, op.after_region.block

    def tested(carried: list[Value]) -> tuple[Value, Sequence[Value]]:
        emitter.bind_carried(test.args, carried)
        end = emitter.block(test)
        assert isinstance(end, scf.ConditionOp)
        return emitter.number(end.condition), emitter.carried(end.args)

    def run(handed: list[Value]) -> Sequence[Value]:
        emitter.bind_carried(body.args, handed)
        return emitter.yielded(body)

    emitter.bind_carried(op.results, emitter.f.repeat(emitter.carried(op.arguments), tested, run))


@RULES.emits(scf.IfOp)
def _if(emitter: KernelEmitter, op: scf.IfOp) -> None:
    def side(region: Region) -> Callable[[], Sequence[Value]]:
        return lambda: emitter.yielded(region.block) if region.blocks else []

    condition = emitter.number(op.cond)
    emitter.bind_carried(op.results, emitter.f.branch(condition, side(op.true_region), side(op.false_region)))


@RULES.emits(tile.AssertOp)
def _assert(emitter: KernelEmitter, op: tile.AssertOp) -> None:
    given = emitter.values[op.condition]
    good = given if isinstance(given, Value) else emitter.all_true(given)
    if good is not None:
        wrong = emitter.f.binary("xor", good, 1)
        emitter.branch(wrong, lambda: emitter.report(said(op.message.data, op)))
