"""What runs a traced function: the reference interpreter here, compiled programs elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from tessera.lang.functions import MAIN, TracedFunction
from tessera.runtime.device import Device
from tessera.runtime.memory import aligned
from tessera.runtime.tensor import Tensor

if TYPE_CHECKING:
    from tessera.interpreters.machine import Machine

Run = Callable[..., tuple[Tensor, ...]]


class Program(Protocol):
    """A function that can be run for any arguments it was traced for."""

    def bind(self, values: Sequence[Tensor]) -> Run:
        """What runs it for arguments with the metas of these."""
        ...


class Interpreted:
    """A traced function run by the reference meaning of its ops."""

    def __init__(self, traced: TracedFunction, device: Device, machine: Callable[[], Machine]) -> None:
        self.traced = traced
        self.device = device
        self.machine = machine

    def bind(self, values: Sequence[Tensor]) -> Run:
        return self._run

    def _run(self, *values: Tensor) -> tuple[Tensor, ...]:
        from tessera.interpreters.graph import run_function

        arrays = [value.cpu().numpy() for value in values]
        results = run_function(self.traced.module, MAIN, arrays, machine=self.machine())
        made = [
            Tensor.wrap(aligned(_owned(array, arrays)), dtype)
            for array, (_, dtype) in zip(results, self.traced.result_types, strict=True)
        ]
        return tuple(one.to(self.device) for one in made)


def _owned(array: Any, arguments: Sequence[Any]) -> Any:
    """A result with memory of its own: an op may hand an argument on, or repeat one element."""
    import numpy as np

    shared = any(np.shares_memory(array, argument) for argument in arguments)
    return array.copy() if shared or not array.flags.writeable else array
