"""Kernels as subjects of a compile: a graph that only calls the kernel, and its tile function."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import Parameter
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from tessera.compile.subjects import AtTiles, Loaded, Part, Subject, refuse_other_arguments
from tessera.errors import CompileError, DeviceError, ShapeError
from tessera.interpreters.core.engine import symbol_in
from tessera.ir.common.locations import span_of
from tessera.ir.graph import dialect as graph
from tessera.ir.schedule import dialect as schedule
from tessera.ir.tile import dialect as tile
from tessera.runtime.program.executable import Runner
from tessera.runtime.tensor.creation import asarray
from tessera.runtime.tensor.tensor import Tensor
from tessera.shapes.expr import dim
from tessera.tile.calls.arguments import collect, is_array
from tessera.tile.calls.assumptions import Assumptions
from tessera.tile.calls.compiling import source_of
from tessera.tile.calls.function import Kernel
from tessera.tile.calls.guarded_kernel import GuardedKernel
from tessera.tile.calls.instance import Instance
from tessera.tile.calls.levels import calling_module
from tessera.tile.calls.program_cache import Programs, lines_of
from tessera.tile.calls.settings import Settings, device_of
from tessera.tile.language.schedule import Schedule
from tessera.transforms.core.facts import Fact, Facts
from tessera.transforms.pipeline import Stage, default_stages

_ARGUMENT = re.compile(r"arg(\d+)")


@dataclass(frozen=True)
class KernelSubject(Subject):
    """A kernel, the arguments that it is lowered for, and its instance for these."""

    kernel: Kernel
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    instance: Instance
    values: tuple[Any, ...]

    @staticmethod
    def of(kernel: Kernel, args: Sequence[Any], kwargs: Mapping[str, Any], chosen: Settings | None) -> KernelSubject:
        """A fresh trace, without what is assumed, under the schedule that calls have on the target."""
        fresh = kernel.changed(_instances={}, _programs=Programs(), assumed=Assumptions())
        instance = fresh.form_for(args, kwargs, chosen).lower(*args, **kwargs)
        values = collect(instance.paths, given(kernel, args, kwargs))
        return KernelSubject(kernel, tuple(args), dict(kwargs), instance, tuple(values))

    @property
    def name(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]  (read only)
        return self.instance.name

    @property
    def sizes(self) -> Mapping[str, int]:  # pyright: ignore[reportIncompatibleVariableOverride]  (read only)
        function = symbol_in(self.instance.module, self.name, tile.FuncOp)
        found: dict[str, int] = {}
        for shape, value in zip(function.shapes, self.values, strict=False):  # results have no values yet
            if isinstance(value, Tensor):
                found.update((str(symbol), size) for symbol, size in zip(shape.data, value.shape, strict=True))
        return found

    def graph(self) -> ModuleOp:
        function = symbol_in(self.instance.module, self.name, tile.FuncOp)
        _check_filled(self.kernel, function, self.instance.paths)
        return calling_module(self.instance, self.instance.schedule)

    def stages(self, chosen: Settings) -> Mapping[str, Stage]:
        return default_stages()

    def retraced(self, options: Mapping[str, Any], chosen: Settings) -> KernelSubject:
        return KernelSubject.of(self.kernel.with_schedule(schedule_of(options)), self.args, self.kwargs, chosen)

    def parts(self, module: ModuleOp, chosen: Settings) -> Sequence[Part]:
        instance, values = self._in(module)
        facts = self.kernel.assumed.facts(instance, values)
        return [Part(source_of(instance), facts, lines_of(values))]

    def program(
        self, tiles: AtTiles, chosen: Settings, loaded: Sequence[Loaded]
    ) -> tuple[GuardedKernel, Callable[..., Any]]:
        instance, _ = self._in(tiles.module)
        (one,) = loaded
        lines = one.part.lines if chosen.compiler.keeps_row_alignment else None
        made = GuardedKernel.of(instance, one.executable, one.guards, lines)
        made = replace(made, report=one.report, target=chosen.target)
        return made, _KernelCall(self.kernel, made, chosen)

    def _in(self, module: ModuleOp) -> tuple[Instance, list[Any]]:
        """The instance whose program is the one that a lowered graph launches, and the values of its arguments.

        In a graph arrays that a kernel fills are results, so they come behind its other arguments.
        """
        instance = self.instance
        launches = [op for op in module.walk() if isinstance(op, schedule.LaunchOp | graph.CallKernelOp)]
        name = launches[0].callee.string_value() if launches else instance.name
        filled = symbol_in(instance.module, instance.name, tile.FuncOp).filled
        order = [*(index for index in range(len(instance.paths)) if index not in filled), *filled]
        numbers = {old: new for new, old in enumerate(order)}

        def renamed(atom: Fact) -> Fact:
            return replace(
                atom,
                subject=_ARGUMENT.sub(lambda found: f"arg{numbers.get(int(found[1]), int(found[1]))}", atom.subject),
            )

        lowered = replace(
            instance,
            module=ModuleOp([symbol_in(module, name, tile.FuncOp).clone()]),
            name=name,
            paths=tuple(instance.paths[index] for index in order),
            kinds=tuple(instance.kinds[index] for index in order),
            guards=Facts(map(renamed, instance.guards)),
        )
        return lowered, [self.values[index] for index in order]


class _KernelCall:
    """Calls of a compiled kernel, bound once for arrays of the same sizes and strides."""

    def __init__(self, kernel: Kernel, program: GuardedKernel, chosen: Settings) -> None:
        self.kernel, self.program, self.chosen = kernel, program, chosen
        self._runners: dict[tuple[Any, ...], Runner] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        values = self.program.values_for(given(self.kernel, args, kwargs))
        if values is None:
            raise refuse_other_arguments(self.kernel.__name__, self.program.guards)
        found = device_of(self.kernel.__name__, values)
        if found.is_host == self.chosen.compiler.is_asynchronous:
            raise DeviceError(
                f"the arguments of {self.kernel.__name__} lie on {found}, and it was compiled for {self.chosen.target}",
                hint="bring them over first, or compile it for where they lie",
            )
        arrays = [value.geometry if isinstance(value, Tensor) else value for value in values]
        key = tuple([value.meta if isinstance(value, Tensor) else value.__class__ for value in values])
        run = self._runners.get(key)
        if run is None:
            assert self.program.executable is not None
            bound = self.program.executable.bind(arrays, deterministic=self.chosen.deterministic)
            run = self._runners.setdefault(key, bound)
        return run(*arrays)


def _check_filled(kernel: Kernel, function: tile.FuncOp, paths: Sequence[str]) -> None:
    """Refuses kernels that fill arrays of sizes that no other argument has: in a graph these are results."""
    filled, shapes = function.filled, [shape.data for shape in function.shapes]
    known = {
        symbol
        for index, shape in enumerate(shapes[: len(paths)])
        if index not in filled
        for size in shape
        for symbol in dim(size).symbols
    }
    for index in filled:
        if loose := sorted({symbol for size in shapes[index] for symbol in dim(size).symbols} - known):
            raise ShapeError(
                f"kernel {kernel.__name__} fills '{paths[index]}', and no other argument tells its sizes"
                f" {', '.join(map(str, loose))}: in a graph it is a result",
                span=kernel.annotations.span(paths[index]) or span_of(function.location),
                hint='annotate it with sizes of other arguments: Out[KTile["M", "N", f32]]',
            )


def given(kernel: Kernel, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by name, without the static ones, arrays as tensors."""
    bound = kernel.signature.bind(*args, **kwargs)
    bound.apply_defaults()
    return {
        name: asarray(value) if is_array(value) else value
        for name, value in bound.arguments.items()
        if kernel.signature.parameters[name].kind is not Parameter.KEYWORD_ONLY
    }


def schedule_of(options: Mapping[str, Any]) -> Schedule:
    """A schedule from its fields by name."""
    try:
        return Schedule(**options)
    except TypeError as error:
        raise CompileError(
            f"not options of a schedule: {error}", hint="block, warps, stages, vector, swizzle"
        ) from None
