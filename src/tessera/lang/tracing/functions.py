"""Tracing one function for given types: its graph module, where results come from, and what it depends on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from tessera.cached_property import cached_property
from tessera.dtypes.types import DType
from tessera.errors import SourceSpan
from tessera.internal_errors import boundary
from tessera.lang.tracing.index_ranges import IndexRange
from tessera.lang.tracing.sizes import SizeGuard, Sizes, TracedSize, plain_size
from tessera.lang.tracing.values import Copied, Trace, Traced, Writers, is_array, tracing
from tessera.runtime.device.device import Device
from tessera.runtime.tensor.pytree import tree_flatten
from tessera.runtime.tensor.tensor import Tensor
from tessera.shapes.bounds import Interval
from tessera.shapes.expr import Dim, Size
from tessera.shapes.history import ShapeHistory
from tessera.shapes.symbols import Symbols

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

MAIN = "main"


@dataclass(frozen=True)
class ArgumentType:
    """The type that a function is traced for at one leaf of its arguments."""

    name: str
    sizes: tuple[Size, ...]
    dtype: DType
    weak: bool = False
    span: SourceSpan | None = None


@dataclass(frozen=True)
class Outcome:
    """The source of one leaf of a function's result: the index of a program's result, a size, or a constant."""

    result: int | None = None
    size: Dim | None = None
    constant: Any = None


@dataclass
class TracedFunction:
    """A function as a graph module, for one list of argument types. `source` is the module, or its text."""

    name: str
    source: ModuleOp | str
    types: tuple[ArgumentType, ...]
    hidden: tuple[Tensor, ...]
    outcomes: tuple[Outcome, ...]
    structure: Any
    guards: tuple[SizeGuard, ...]
    least: Mapping[str, Interval]
    effects: tuple[str, ...]
    result_types: tuple[tuple[tuple[Size, ...], DType], ...]
    histories: tuple[ShapeHistory, ...]
    copied: tuple[Copied, ...] = ()
    """Arrays whose elements were copied, or read by Python: it is right while they are what they were."""
    lifted: tuple[Any, ...] = ()
    """The objects behind the arguments that callers do not see."""
    index_ranges: tuple[IndexRange, ...] = ()
    """The ranges of arguments that are indices."""
    finish: tuple[Any] | None = None
    """Makes the function's result of its program's results, where that is the same for all sizes; see `jit`."""

    @cached_property
    def symbols(self) -> Symbols:
        """Finds the sizes of symbols from the shapes of arguments."""
        return Symbols(one.sizes for one in self.types)

    @property
    def module(self) -> ModuleOp:
        if isinstance(self.source, str):
            from tessera.ir import text

            self.source = text.read(self.source)
        return self.source


def trace_function(
    name: str,
    function: Callable[..., Any],
    types: Sequence[ArgumentType],
    rebuild: Callable[[Sequence[Any]], tuple[tuple[Any, ...], dict[str, Any]]],
    device: Device,
    numbers: Mapping[str, int] | None,
    intervals: Mapping[str, Interval],
) -> TracedFunction:
    """Runs `function` on traced values of these types; `numbers` are the sizes of the symbols in the call at hand."""
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Block, Region

    from tessera.ir import text
    from tessera.ir.graph import dialect as graph
    from tessera.ir.graph.slices import LEAST, least_sizes
    from tessera.lang.tracing import primitives
    from tessera.lang.tracing.arithmetic import elementwise, tensor
    from tessera.lang.tracing.kernel_calls import call_kernel

    sizes = Sizes(numbers, intervals)
    trace = Trace(name, Block(), sizes, device, Writers(elementwise, call_kernel))
    with tracing(trace):
        arguments = [
            primitives.argument(
                trace,
                one.sizes,
                one.dtype,
                ShapeHistory(f"argument '{one.name}'", one.sizes, span=one.span),
                weak=one.weak,
            )
            for one in types
        ]
        for argument, one in zip(arguments, types, strict=True):
            argument.value.name_hint = _identifier(one.name)
        args, kwargs = rebuild(arguments)
        result = function(*args, **kwargs)
        leaves, structure = tree_flatten(result)
        values: list[Traced] = []
        outcomes: list[Outcome] = []
        for leaf in leaves:
            if isinstance(leaf, TracedSize):
                found = plain_size(leaf)
                outcomes.append(Outcome(constant=found) if isinstance(found, int) else Outcome(size=found))
            elif isinstance(leaf, Traced) or is_array(leaf):
                value = tensor(leaf)
                outcomes.append(Outcome(result=len(values)))
                values.append(value)
            else:
                outcomes.append(Outcome(constant=leaf))
        primitives.write(graph.ReturnOp([value.value for value in values]))
        for end in trace.ends:
            end()
    main = graph.FuncOp(
        MAIN,
        [argument.type for argument in trace.body.args],
        [value.value.type for value in values],
        sorted(trace.effects),
        Region(trace.body),
    )
    if (least := least_sizes(sizes.intervals)) is not None:
        main.attributes[LEAST] = least
    module = ModuleOp([*trace.beside, main])
    with boundary(name, "the check of what was traced", partial(text.write, module)):
        text.verify(module)
    return TracedFunction(
        name,
        module,
        tuple(types),
        tuple(tensor for tensor, _ in trace.hidden.values()),
        tuple(outcomes),
        structure,
        tuple(sizes.guards.values()),
        dict(sizes.intervals),
        tuple(sorted(trace.effects)),
        tuple((value.sizes, value.dtype) for value in values),
        tuple(value.history for value in values),
        tuple(trace.copied),
        tuple(trace.kept.get("sources", ())),
        tuple(trace.index_ranges),
    )


def _identifier(name: str) -> str:
    """A name as IR text can print it."""
    return "".join(letter if letter.isalnum() else "_" for letter in name).strip("_") or "argument"
