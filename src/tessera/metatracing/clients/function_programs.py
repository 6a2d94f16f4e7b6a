"""Compiled functions as the tiers run them: their guards, and calls from tensors and numbers to results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tessera.lang.calls.parameters import scalar
from tessera.lang.calls.variants import sizes_for
from tessera.lang.jit import finish_for
from tessera.lang.tracing.functions import TracedFunction
from tessera.runtime.device.device import Device
from tessera.runtime.tensor.tensor import Tensor
from tessera.tiers.client import Call, GuardType, Runner, RuntimeGuard
from tessera.tiers.records import LaunchFacts, Number

if TYPE_CHECKING:
    from tessera.programs import Program


def tensors_of(values: Sequence[Any], device: Device | None = None) -> list[Tensor]:
    """Arguments as programs take them: numbers are tensors without axes, on the same device."""
    made = [value if isinstance(value, Tensor) else scalar(value) for value in values]
    return made if device is None else [one if one.device == device else one.to(device) for one in made]


def guards_of(
    traced: TracedFunction, paths: Sequence[str], words: Sequence[str], facts: Mapping[str, Number]
) -> tuple[RuntimeGuard, ...]:
    """Guards on the sizes that a trace depends on, and on the facts of these words."""
    guards: list[RuntimeGuard] = []
    words_of: dict[str, str] = {}
    related: list[str] = []
    for index, (one, path) in enumerate(zip(traced.types, paths, strict=True)):
        if path in words:
            guards.append(RuntimeGuard.about(index, path, "value", 0, facts[path]))
        for axis, size in enumerate(one.sizes):
            word = f"{path}.size[{axis}]"
            if isinstance(size, int) or word in words:
                known = size if isinstance(size, int) else facts[word]
                guards.append(RuntimeGuard.about(index, path, "size", axis, known))
            first = words_of.setdefault(str(size), word)
            if not isinstance(size, int) and (first != word or not str(size).isidentifier()):
                related.append(f"{word} = {size if first == word else first}")
    related += [f"{words_of.get(symbol, symbol)} >= {low}" for symbol, (low, _) in traced.least.items() if low]
    related += [str(guard) for guard in traced.guards]
    if related:

        def serves(values: Sequence[Any]) -> bool:
            return sizes_for(traced, tensors_of(values)) is not None

        guards.append(RuntimeGuard(GuardType.RELATION_GUARD, 0, 0, " and ".join(related), True, serves))
    return tuple(guards)


class FunctionProgram:
    """A compiled function. `fixed` are numbers that are part of it, by the indices of their arguments.

    With `graph`, launches that follow each other on a GPU are replayed as one graph, where that can be.
    """

    def __init__(
        self,
        traced: TracedFunction,
        program: Program,
        guards: tuple[RuntimeGuard, ...],
        fixed: Mapping[int, Number],
        device: Device,
        *,
        graph: bool = False,
    ) -> None:
        self.traced, self.program, self.guards = traced, program, guards
        self._fixed, self._device, self._graph = fixed, device, graph
        self._last: tuple[object, Runner] | None = None
        self.recorded = 0
        """Launches that are replayed as graphs, of the last binding."""

    @property
    def is_native(self) -> bool:
        return self.program.settings is not None

    @property
    def is_repeatable(self) -> bool:
        """Results are new arrays in any case; writes to states and prints before it failed are not undone."""
        return not self.traced.effects

    @property
    def nbytes(self) -> int:
        return self.program.codes.nbytes

    def bind(self, call: Call) -> Runner:
        metas = tuple([value.meta if isinstance(value, Tensor) else None for value in call.values])
        if self._last is None or self._last[0] != metas:
            self._last = (metas, self._bound(call))
        return self._last[1]

    def _bound(self, call: Call) -> Runner:
        traced = self.traced
        values = tensors_of(call.values, self._device)
        sizes = sizes_for(traced, values)
        assert sizes is not None
        bound = self.program.bind([*values, *traced.hidden], graph=self._graph)
        self.recorded = bound.recorded
        finish = finish_for(traced, sizes)
        scope: dict[str, Any] = {"run": bound.run, "finish": finish, "scalar": scalar, "device": self._device}
        names = [f"v{index}" for index in range(len(values))]
        moved = "" if self._device.is_host else ".to(device)"
        passed: list[str] = []
        for index, (name, value) in enumerate(zip(names, call.values, strict=True)):
            if index in self._fixed:
                scope[f"known{index}"] = values[index]
                passed.append(f"known{index}")
            else:
                passed.append(name if isinstance(value, Tensor) else f"scalar({name}){moved}")
        for number, hidden in enumerate(traced.hidden):
            scope[f"hidden{number}"] = hidden
            passed.append(f"hidden{number}")
        text = f"run({', '.join(passed)})"
        return eval(f"lambda {', '.join(names)}: {text if finish is None else f'finish({text})'}", scope)

    def launch_facts(self, call: Call) -> LaunchFacts:
        """No facts: a program of many kernels has no one grid."""
        return LaunchFacts()
