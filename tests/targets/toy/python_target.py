"""A target in one folder: it writes Python over NumPy arrays, a line for each op. It knows nothing of CPUs or GPUs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects import arith, scf
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from tessera.compiler.artifact import Artifact, LoweredKernel, Source, Words, plan_of
from tessera.compiler.launch_plan import ArrayArgument, Plan
from tessera.compiler.options import CompileOptions
from tessera.compiler.target import Local, Target
from tessera.errors import CompileError
from tessera.interpreters.core.engine import symbol_in
from tessera.ir.common.locations import span_of
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.runtime.tensor.creation import asarray
from tessera.runtime.tensor.tensor import Tensor
from tessera.transforms.core.canonicalize import Canonicalize
from tessera.transforms.core.context import CompileContext
from tessera.transforms.core.facts import Facts
from tessera.transforms.core.stages import Files, Stage, StageRunner
from tessera.transforms.loops.live_iterations import ClipRanges

EW: Mapping[str, str] = {
    "add": "{} + {}",
    "sub": "{} - {}",
    "mul": "{} * {}",
    "div": "{} / {}",
    "max": "np.maximum({}, {})",
    "maximum": "np.maximum({}, {})",
    "exp": "np.exp({})",
    "lt": "{} < {}",
    "select": "np.where({}, {}, {})",
}
SCALARS: Mapping[type[Operation], str] = {
    arith.AddiOp: "{} + {}",
    arith.SubiOp: "{} - {}",
    arith.MuliOp: "{} * {}",
    arith.FloorDivSIOp: "{} // {}",
    arith.CeilDivSIOp: "-(-{} // {})",
    arith.MinSIOp: "min({}, {})",
    arith.MaxSIOp: "max({}, {})",
    arith.IndexCastOp: "{}",
    arith.MulfOp: "{} * {}",
    arith.AddfOp: "{} + {}",
}
REDUCTIONS = {"sum": "np.sum", "max": "np.max"}


class _Writer:
    """Writes the body of one kernel; values are Python names."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[SSAValue, str] = {}
        self.depth = 1

    def name(self, value: SSAValue) -> str:
        return self.names.setdefault(value, f"v{len(self.names)}")

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def block(self, block: Block) -> None:
        for op in block.ops:
            if not isinstance(op, scf.YieldOp | tile.ReturnOp):
                self.op(op)

    def op(self, op: Operation) -> None:
        if isinstance(op, scf.ForOp):
            self.loop(op)
        elif isinstance(op, tile.StoreOp):
            at = ", ".join(self.name(offset) for offset in op.offsets)
            self.line(f"store({self.name(op.view)}, ({at},), {self.name(op.value)})")
        else:
            self.line(f"{self.name(op.results[0])} = {self.expression(op)}")

    def loop(self, op: scf.ForOp) -> None:
        end, body = op.body.block.last_op, op.body.block
        assert end is not None
        counter, *carried = body.args
        for argument, start in zip(carried, op.iter_args, strict=True):
            self.line(f"{self.name(argument)} = {self.name(start)}")
        bounds = ", ".join(self.name(value) for value in (op.lb, op.ub, op.step))
        self.line(f"for {self.name(counter)} in range({bounds}):")
        self.depth += 1
        self.block(body)
        targets = ", ".join(self.name(argument) for argument in carried)
        if carried:
            self.line(f"{targets}, = {', '.join(self.name(value) for value in end.operands)},")
        self.depth -= 1
        for result, argument in zip(op.results, carried, strict=True):
            self.line(f"{self.name(result)} = {self.name(argument)}")

    def expression(self, op: Operation) -> str:
        given = [self.name(operand) for operand in op.operands]
        match op:
            case arith.ConstantOp():
                number: Any = op.value
                return repr(number.value.data).replace("inf", "np.inf").replace("nan", "np.nan")
            case tile.ProgramIdOp():
                return f"ids[{op.axis.value.data}]"
            case tile.DimOp():
                return f"{given[0]}.shape[{op.axis.value.data}]"
            case tile.LoadOp():
                at, shape = ", ".join(self.name(offset) for offset in op.offsets), tile_type(op.result).get_shape()
                return f"load({self.name(op.view)}, ({at},), {tuple(shape)}, {op.pad_value or 0})"
            case tile.FullOp():
                shape, dtype = tuple(tile_type(op.result).get_shape()), tile_dtype(op.result).storage
                return f"np.full({shape}, {given[0]}, np.{dtype})"
            case tile.EwOp() if op.fn.data == "cast":
                return f"{given[0]}.astype(np.{tile_dtype(op.result).storage})"
            case tile.EwOp() if op.fn.data in EW:
                return EW[op.fn.data].format(*given)
            case tile.ReduceOp() if op.kind.data in REDUCTIONS:
                return f"{REDUCTIONS[op.kind.data]}({given[0]}, axis={op.axis.value.data})"
            case tile.ExpandOp():
                return f"np.expand_dims({given[0]}, {op.axis.value.data})"
            case tile.BroadcastOp():
                return f"np.broadcast_to({given[0]}, {tuple(tile_type(op.result).get_shape())})"
            case tile.DotOp():
                return f"{given[2]} + {given[0]} @ {given[1]}"
            case _ if type(op) in SCALARS:
                return SCALARS[type(op)].format(*given)
            case _:
                raise CompileError(f"Python has no line for {op.name}", span=span_of(op.location))


PRELUDE = """import numpy as np

def load(array, at, shape, pad):
    found = np.full(shape, pad, array.dtype)
    part = array[tuple(slice(start, start + size) for start, size in zip(at, shape))]
    found[tuple(slice(0, size) for size in part.shape)] = part
    return found

def store(array, at, tile):
    part = array[tuple(slice(start, start + size) for start, size in zip(at, tile.shape))]
    part[...] = tile[tuple(slice(0, size) for size in part.shape)]

"""


class PythonProgram:
    """A launch plan with Python text, bound to arrays."""

    def __init__(self, plan: Plan, code: bytes) -> None:
        self.plan, self.nbytes = plan, len(code)
        names: dict[str, Any] = {}
        exec(compile(code, plan.name, "exec"), names)
        self.program: Callable[..., None] = names["program"]

    def bind(self, values: Sequence[Any], *, deterministic: bool = True) -> Callable[..., Any]:
        """A function of inputs of these shapes."""
        plan = self.plan
        arrays: list[np.ndarray[Any, Any] | None] = [one if isinstance(one, np.ndarray) else None for one in values]
        sizes = plan.sizes([None if array is None else array.shape for array in arrays])
        shapes, grid = plan.result_shapes(sizes), plan.extents(sizes)

        def run(*inputs: Any) -> Any:
            results = [
                np.empty(shape, argument.dtype.storage)
                for shape, argument in zip(shapes, plan.results, strict=True)
                if isinstance(argument, ArrayArgument)
            ]
            for ids in itertools.product(*map(range, grid)):
                self.program(ids, *inputs, *results)
            found: list[Tensor] = [asarray(result) for result in results]
            return None if not found else found[0] if len(found) == 1 else tuple(found)

        return run


class PythonTarget(Target):
    """Kernels as Python."""

    name = "python"
    levels = ("numpy",)
    executable = "python_target:PythonProgram"

    def default_level(self) -> str:
        return "numpy"

    def lower(
        self, source: Source, options: CompileOptions, facts: Facts, lines: Mapping[int, int], local: Local | None
    ) -> LoweredKernel:
        runner = StageRunner(f"@{source.name}", CompileContext.with_facts(facts), Files.of(source.module))
        stages = {"canonicalize": Stage(Canonicalize(), "tile"), ClipRanges.name: Stage(ClipRanges(), "tile")}
        module = runner.run(source.module.clone(), stages)
        written = self._written(symbol_in(module, source.name, tile.FuncOp))
        count = source.inputs + source.outputs

        def finish() -> Artifact:
            return Artifact(plan_of(source, Words(list(range(count)), count, count), ()), written.encode())

        return LoweredKernel(module, written, lambda: written, finish, seconds=runner.seconds)

    def _written(self, function: tile.FuncOp) -> str:
        writer = _Writer()
        arguments = ", ".join(["ids", *map(writer.name, function.arguments)])
        writer.block(function.body.block)
        return PRELUDE + f"def program({arguments}):\n" + "\n".join(writer.lines) + "\n"

    def passes(self) -> Mapping[str, type[ModulePass]]:
        return {}


def lines_of(made: Artifact) -> Iterator[str]:
    """The lines of a program's own function."""
    yield from made.code.decode().partition("def program")[2].splitlines()
