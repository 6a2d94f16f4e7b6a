"""State that outlives calls: a slot that traced functions read and write, in the order of the program."""

from __future__ import annotations

from itertools import count
from typing import Any

from tessera.errors import DtypeError, ShapeError
from tessera.lang.tracing import primitives
from tessera.lang.tracing.current_machine import current_machine
from tessera.lang.tracing.effects import allow
from tessera.lang.tracing.graph_modules import effects
from tessera.lang.tracing.values import Traced, current, current_or_none, shown
from tessera.runtime.device.memory import aligned_copy
from tessera.runtime.tensor.creation import asarray
from tessera.runtime.tensor.tensor import Tensor
from tessera.shapes.expr import format_shape

_numbers = count()


class State:
    """A tensor that functions may change: `read` gives its value, `write` replaces it by another of its type.

    In a jitted function both are effects: they happen in the order of the program, and when the function is called.
    """

    def __init__(self, value: Any) -> None:
        tensor = value if isinstance(value, Tensor) else asarray(value)
        self.shape, self.dtype = tensor.shape, tensor.dtype
        self.slot = f"state_{next(_numbers)}"
        current_machine().slots[self.slot] = aligned_copy(tensor.cpu().numpy())

    def __repr__(self) -> str:
        return f"State({format_shape(self.shape)}, {self.dtype})"

    def read(self) -> Any:
        """The value now."""
        if current_or_none() is None:
            return Tensor.wrap(aligned_copy(current_machine().slots[self.slot]), self.dtype)
        self._declare()
        type_ = primitives.tensor_type(self.shape, self.dtype)
        return primitives.emit("state", lambda _: effects.StateReadOp(self.slot, type_))

    def write(self, value: Any) -> None:
        """Replaces the value by another of the same shape and dtype."""
        if current_or_none() is None:
            tensor = value if isinstance(value, Tensor) else asarray(value)
            self._check(tensor.shape, tensor.dtype, ())
            current_machine().slots[self.slot] = aligned_copy(tensor.cpu().numpy())
            return
        given = primitives.lift(value)
        if given.weak and given.dtype.kind is self.dtype.kind:
            given = primitives.cast(given, self.dtype)
        self._check(given.sizes, given.dtype, (given,))
        self._declare()
        stored = primitives.cast(given, self.dtype)
        primitives.write(effects.StateWriteOp(self.slot, stored.value))

    def _check(self, shape: Any, dtype: Any, given: tuple[Traced, ...]) -> None:
        story = tuple(line for one in given for line in one.history.lines())
        if tuple(shape) != self.shape:
            raise ShapeError(
                f"state of shape {format_shape(self.shape)} is given {format_shape(shape)}",
                shapes=shown(*given),
                story=story,
                hint="a state keeps its shape: make another, or slice and pad",
            )
        if dtype.base is not self.dtype.base:
            raise DtypeError(
                f"state of {self.dtype} is given {dtype}",
                shapes=shown(*given),
                story=story,
                hint=f"cast it: ts.astype(value, ts.{self.dtype.base})",
            )

    def _declare(self) -> None:
        """The slot stands in the module of every function that uses it."""
        allow(f"state({self.slot})", f"state of {format_shape(self.shape)}")
        trace = current()
        if ("state", self.slot) not in trace.kept:
            trace.kept["state", self.slot] = self
            trace.beside.append(effects.StateOp(self.slot, primitives.tensor_type(self.shape, self.dtype)))


def debug_print(label: str, x: Any) -> None:
    """Prints a label and a tensor's elements when the program runs; outside of a trace, at once."""
    if current_or_none() is not None:
        primitives.show(label, x)
    else:
        current_machine().write(f"{label} {asarray(x).cpu().numpy()}\n")
