"""Jitted functions as subjects of a compile: the graph of a function, and the tile functions that it becomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from tessera.compile.subjects import AtTiles, Loaded, Part, Subject, refuse_other_arguments
from tessera.errors import CompileError
from tessera.lang.calls.parameters import Call
from tessera.lang.calls.variants import ObservedSizes, sizes_for
from tessera.lang.jit import Jitted, device_of, finish_for, made_fast
from tessera.lang.tracing.current_machine import current_machine
from tessera.lang.tracing.functions import MAIN, TracedFunction
from tessera.programs.buffer_assignment import assign_buffers
from tessera.programs.compile import program_of
from tessera.programs.machine_code import source_in
from tessera.programs.program import BoundProgram, Program
from tessera.programs.row_alignment import RowAlignment, launches_in
from tessera.runtime.device.device import Device
from tessera.runtime.tensor.tensor import Tensor
from tessera.targets.choose_blocks import stages_for
from tessera.tile.calls.settings import Settings
from tessera.transforms.core.compile_report import CompileReport
from tessera.transforms.core.facts import Facts
from tessera.transforms.pipeline import Stage


@dataclass(frozen=True)
class FunctionSubject(Subject):
    """A jitted function, traced for one call."""

    jitted: Jitted
    call: Call
    traced: TracedFunction
    module: ModuleOp
    sizes: Mapping[str, int]

    @staticmethod
    def of(jitted: Jitted, args: Sequence[Any], kwargs: Mapping[str, Any], chosen: Settings) -> FunctionSubject:
        """A fresh trace; sizes are numbers, apart from those that annotations name."""
        call = jitted.parameters.call(jitted.parameters.bind(args, kwargs))
        seen = ObservedSizes()
        seen.add(call.values)
        traced = jitted.trace(call, seen, device_of(jitted.name, call))
        module = made_fast(traced.module) if jitted.is_fast(chosen) else traced.module
        return FunctionSubject(jitted, call, traced, module, sizes_for(traced, call.values) or {})

    @property
    def name(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]  (read only)
        return self.jitted.name

    def graph(self) -> ModuleOp:
        return self.module

    def stages(self, chosen: Settings) -> Mapping[str, Stage]:
        return stages_for(chosen.target, chosen.level, checks=chosen.checks)

    def retraced(self, options: Mapping[str, Any], chosen: Settings) -> FunctionSubject:
        raise CompileError(
            f"a schedule is of one kernel, and {self.name} becomes several: got {', '.join(options)}",
            hint="blocks are chosen for each; kernels that it calls have schedules of their own",
        )

    def parts(self, module: ModuleOp, chosen: Settings) -> Sequence[Part]:
        program, values = program_of(self.module, module, {}, chosen, MAIN), self._values
        geometry = [(value.shape, value.strides) for value in values]
        buffers = assign_buffers(program.host, program.sizes(values), geometry)
        rows = RowAlignment(buffers, [value.meta.alignment for value in values])
        runs = Counter((run.kernel, rows.lines(run)) for run in launches_in(buffers.acts))
        if not chosen.compiler.keeps_row_alignment:
            totals = Counter[int]()
            for (number, _), count in runs.items():
                totals[number] += count
            runs = Counter({(number, ()): count for number, count in totals.items()})
        sources = [source_in(module, kernel) for kernel in program.host.kernels]
        return [
            Part(sources[number], Facts(), dict(enumerate(lines)), number, count)
            for (number, lines), count in runs.items()
        ]

    @property
    def _values(self) -> list[Tensor]:
        return [*self.call.values, *self.traced.hidden]

    def program(self, tiles: AtTiles, chosen: Settings, loaded: Sequence[Loaded]) -> tuple[Program, Callable[..., Any]]:
        made = program_of(
            self.module, tiles.module, tiles.texts, chosen, MAIN, CompileReport(refusals=[*tiles.refusals])
        )
        made.world = current_machine
        for one in loaded:
            lines = tuple(one.part.lines.values()) if chosen.compiler.keeps_row_alignment else None
            made.codes.keep(one.part.number, chosen, lines, one.executable, one.report)
        return made, _FunctionCall(self, made)


class _FunctionCall:
    """Calls of a compiled function, bound once for arrays of the same sizes and strides."""

    def __init__(self, subject: FunctionSubject, program: Program) -> None:
        self.subject, self.program = subject, program
        self._bound: dict[tuple[Any, ...], BoundProgram] = {}
        self._hidden: dict[Device, list[Tensor]] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        jitted, traced = self.subject.jitted, self.subject.traced
        call = jitted.parameters.call(jitted.parameters.bind(args, kwargs))
        sizes = sizes_for(traced, call.values) if call.key == self.subject.call.key else None
        if sizes is None:
            types = [f"{one.name} of {one.dtype}{list(map(str, one.sizes))}" for one in traced.types]
            raise refuse_other_arguments(jitted.name, types)
        values = self._on_device(call)
        key = tuple([value.meta for value in values])
        bound = self._bound.get(key)
        if bound is None:
            bound = self._bound.setdefault(key, self.program.bind(values))
        results, finish = bound.run(*values), finish_for(traced, sizes)
        return results if finish is None else finish(results)

    def _on_device(self, call: Call) -> list[Tensor]:
        """The arguments with the arrays that the function captured, all on one device."""
        device = device_of(self.subject.jitted.name, call)
        hidden = self._hidden.get(device)
        if hidden is None:
            hidden = self._hidden[device] = [_moved(value, device) for value in self.subject.traced.hidden]
        leaves = zip(call.leaves, call.values, strict=True)
        return [*(value if leaf.number is None else _moved(value, device) for leaf, value in leaves), *hidden]


def _moved(value: Tensor, device: Device) -> Tensor:
    return value if value.device is device else value.to(device)
