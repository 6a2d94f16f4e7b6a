"""From a module at the tile level to a host program: what its graph functions leave to the host, calls inlined."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tessera.errors import CompileError
from tessera.interpreters.core.engine import symbol_in
from tessera.ir import text
from tessera.ir.common.elements import dtype_of
from tessera.ir.common.locations import span_of
from tessera.ir.graph import control as graph_control
from tessera.ir.graph import dialect as graph
from tessera.ir.graph import effects as graph_effects
from tessera.ir.graph.types import GraphTensorType
from tessera.ir.schedule import dialect as schedule
from tessera.ir.structural_hash import structural_hash
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.updates import updated_input
from tessera.programs import host
from tessera.transforms.facts.in_place import overwritable

_KINDS = {"f32": "f32", "f64": "f64", "i64": "i64", "bool": "i1"}


def host_of(module: ModuleOp, name: str = "main", *, located: bool = False) -> host.Host:
    """The host program of a function. Kernels that are alike are one, unless `located`: then sources count, too."""
    return _Reader(module, located).read(symbol_in(module, name, graph.FuncOp))


class _Reader:
    """Reads one module."""

    def __init__(self, module: ModuleOp, located: bool) -> None:
        self.module = module
        self.located = located
        self.values: list[host.Value] = []
        self.numbers: dict[SSAValue, int] = {}
        self.steps: list[host.Step] = []
        self.kernels: dict[tuple[object, ...], tuple[int, host.Kernel]] = {}

    def read(self, function: graph.FuncOp) -> host.Host:
        arguments = [self.add(argument) for argument in function.arguments]
        results = self.block(function.body.block)
        return host.Host(
            function.sym_name.data,
            tuple(self.values),
            tuple(arguments),
            tuple(self.steps),
            tuple(results),
            tuple(kernel for _, kernel in sorted(self.kernels.values(), key=lambda entry: entry[0])),
            tuple(self.slots()),
        )

    def slots(self) -> list[host.Slot]:
        found = [op for op in self.module.body.block.ops if isinstance(op, graph_effects.StateOp)]
        types = [(op.sym_name.data, op.type_) for op in found]
        return [host.Slot(name, kind.dtype, kind.shape) for name, kind in types if isinstance(kind, GraphTensorType)]

    def add(self, value: SSAValue) -> int:
        """A number for a value."""
        self.values.append(described(value.type))
        self.numbers[value] = len(self.values) - 1
        return len(self.values) - 1

    def of(self, values: Sequence[SSAValue]) -> tuple[int, ...]:
        return tuple(self.numbers[value] for value in values)

    def block(self, block: Block) -> tuple[int, ...]:
        """Reads all ops; the values of the one that ends the block."""
        for op in block.ops:
            rule = _RULES.get(type(op))
            if rule is None:
                raise CompileError(
                    f"{op.name} is left to the host, which cannot do it",
                    span=span_of(op.location),
                    hint="it should have become a kernel; see docs/programs.md",
                )
            rule(self, op)
        end = block.last_op
        assert end is not None
        return self.of(end.operands)

    def inside(self, block: Block) -> host.Block:
        """A block of an op; it sees the values around it."""
        outer, self.steps = self.steps, []
        arguments = tuple(self.add(argument) for argument in block.args)
        results = self.block(block)
        made, self.steps = self.steps, outer
        return host.Block(arguments, tuple(made), results)

    def kernel(self, op: schedule.LaunchOp) -> int:
        """The number of the kernel that is launched."""
        function = symbol_in(self.module, op.callee.string_value(), tile.FuncOp)
        config = op.config.data
        identity = identity_of(function, located=self.located)
        found = self.kernels.get((identity, config.warps, config.stages))
        if found is None:
            name, span, free = function.sym_name.data, span_of(function.location), overwritable(function)
            made = host.Kernel(name, identity, config.warps, config.stages, span, free, updated_input(function))
            found = len(self.kernels), made
            self.kernels[identity, config.warps, config.stages] = found
        return found[0]


def identity_of(function: tile.FuncOp, *, located: bool = False) -> str:
    """A digest that tells tile functions apart, whatever they are called.

    A kernel that may stop says where in the source: so those are told apart by that, as all are if `located`.
    """
    renamed = function.clone()
    renamed.properties["sym_name"] = StringAttr("kernel")
    if located or any(isinstance(op, tile.AssertOp) for op in function.body.walk()):
        from tessera.runtime.cache.store import key_of

        return key_of(text.write(renamed, locations=True))
    return structural_hash(renamed)


def described(type_: Attribute) -> host.Value:
    """A value of such a type, as host programs have it."""
    if isinstance(type_, GraphTensorType):
        return host.Array(type_.dtype, tuple(type_.shape))
    name = "i64" if isinstance(type_, IndexType) else dtype_of(type_).name
    if name not in _KINDS:
        raise CompileError(f"a number of {name} cannot be passed to machine code", hint="pass it as an array")
    return host.Number(_KINDS[name])


def _launch(reader: _Reader, op: schedule.LaunchOp) -> None:
    kernel, inputs = reader.kernel(op), reader.of(op.arguments)
    reader.steps.append(host.Launch(kernel, inputs, tuple(reader.add(value) for value in op.results_)))


def _constant(reader: _Reader, op: graph.ConstantOp) -> None:
    reader.steps.append(host.ConstantArray(reader.add(op.result), op.value.data))


def _literal(reader: _Reader, op: arith.ConstantOp) -> None:
    value = op.value
    if not isinstance(value, IntegerAttr | FloatAttr):
        raise CompileError(f"{op.name} of {value} is no number", span=span_of(op.location))
    number = value.value.data
    result = reader.add(op.result)
    is_flag = reader.values[result] == host.Number("i1")
    reader.steps.append(host.Literal(result, bool(number) if is_flag else number))


def _call(reader: _Reader, op: graph.CallOp) -> None:
    callee = symbol_in(reader.module, op.callee.string_value(), graph.FuncOp)
    # A function may be called twice: its values get numbers each time.
    before = dict(reader.numbers)
    inner = callee.body.block
    for argument, value in zip(inner.args, op.arguments, strict=True):
        reader.numbers[argument] = before[value]
    results = reader.block(inner)
    reader.numbers = before
    for result, number in zip(op.results_, results, strict=True):
        reader.numbers[result] = number


def _return(reader: _Reader, op: Operation) -> None:
    """The op that ends a block, which the reader of the block handles."""


def _reshape(reader: _Reader, op: graph.ReshapeOp) -> None:
    source = reader.numbers[op.operand]
    reader.steps.append(host.ArrayView(reader.add(op.result), source, "reshape"))


def _transpose(reader: _Reader, op: graph.TransposeOp) -> None:
    source, permutation = reader.numbers[op.operand], tuple(op.permutation.iter_values())
    reader.steps.append(host.ArrayView(reader.add(op.result), source, "transpose", permutation))


def _slice(reader: _Reader, op: graph.SliceOp) -> None:
    source = reader.numbers[op.operand]
    bounds = (*op.starts.iter_values(), *op.stops.iter_values(), *op.steps.iter_values())
    reader.steps.append(host.ArrayView(reader.add(op.result), source, "slice", bounds))


def _broadcast(reader: _Reader, op: graph.BroadcastOp) -> None:
    source = reader.numbers[op.operand]
    reader.steps.append(host.ArrayView(reader.add(op.result), source, "broadcast"))


def _random(reader: _Reader, op: graph_effects.RandomOp) -> None:
    reader.steps.append(host.Random(reader.add(op.result), op.distribution.data))


def _read(reader: _Reader, op: graph_effects.StateReadOp) -> None:
    reader.steps.append(host.ReadState(reader.add(op.result), op.slot.string_value()))


def _write(reader: _Reader, op: graph_effects.StateWriteOp) -> None:
    reader.steps.append(host.WriteState(reader.numbers[op.value], op.slot.string_value()))


def _print(reader: _Reader, op: graph_effects.PrintOp) -> None:
    reader.steps.append(host.Print(op.label.data, reader.numbers[op.value]))


def _all_reduce(reader: _Reader, op: graph_effects.AllReduceOp) -> None:
    source = reader.numbers[op.operand]
    reader.steps.append(host.AllReduce(reader.add(op.result), source, op.kind.data, op.axis.data))


def _branch(reader: _Reader, op: graph_control.CondOp) -> None:
    test = reader.numbers[op.condition]
    blocks = reader.inside(op.chosen.block), reader.inside(op.otherwise.block)
    reader.steps.append(host.Branch(test, blocks, tuple(reader.add(value) for value in op.results_)))


def _while(reader: _Reader, op: graph_control.WhileOp) -> None:
    start = reader.of(op.inits)
    test, body = reader.inside(op.condition.block), reader.inside(op.body.block)
    reader.steps.append(host.Loop(start, body, tuple(reader.add(value) for value in op.results_), test))


def _scan(reader: _Reader, op: graph_control.ScanOp) -> None:
    start, sliced, body = reader.of(op.inits), reader.of(op.xs), reader.inside(op.body.block)
    results = [reader.add(value) for value in op.results_]
    reader.steps.append(
        host.Loop(
            start,
            body,
            tuple(results[: len(start)]),
            trips=str(op.count),
            sliced=sliced,
            stacked=tuple(results[len(start) :]),
            reverse=op.reverse is not None,
        )
    )


Rule = Callable[[_Reader, Any], None]
_RULES: Mapping[type[Operation], Rule] = MappingProxyType(
    {
        arith.ConstantOp: _literal,
        graph.BroadcastOp: _broadcast,
        graph.CallOp: _call,
        graph.ConstantOp: _constant,
        graph.ReshapeOp: _reshape,
        graph.ReturnOp: _return,
        graph.SliceOp: _slice,
        graph.TransposeOp: _transpose,
        graph_control.CondOp: _branch,
        graph_control.ScanOp: _scan,
        graph_control.WhileOp: _while,
        graph_control.YieldOp: _return,
        graph_effects.AllReduceOp: _all_reduce,
        graph_effects.PrintOp: _print,
        graph_effects.RandomOp: _random,
        graph_effects.StateReadOp: _read,
        graph_effects.StateWriteOp: _write,
        schedule.LaunchOp: _launch,
    }
)
