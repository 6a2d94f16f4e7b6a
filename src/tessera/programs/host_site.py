"""Programs on the CPU: their arenas, launches and copies."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tessera.compiler.launch_plan import Plan
from tessera.dtypes.types import DType
from tessera.errors import ResourceError
from tessera.interpreters.core.machine import Machine
from tessera.programs import arenas
from tessera.programs.buffer_assignment import (
    BufferSlice,
    Combine,
    Draw,
    Geometry,
    Given,
    KernelLaunch,
    Known,
    Load,
    Move,
    Save,
    Show,
)
from tessera.programs.call_codegen import Prepared, Writer
from tessera.runtime.device.memory import Array, aligned_copy, data_address, span_of
from tessera.runtime.native import launch
from tessera.runtime.program.executable import Executable, Fresh, start_pool
from tessera.shapes.tracked import LostError, made

if TYPE_CHECKING:
    from tessera.runtime.tensor.meta import Meta


class HostSite:
    """The CPU, for one bound program."""

    given = ""

    def __init__(self, executables: Sequence[Executable], world: Callable[[], Machine], *, deterministic: bool) -> None:
        self.executables = executables
        self.world = world
        self.deterministic = deterministic
        self._constants: dict[bytes, Array] = {}
        start_pool()  # from the disk, if it can be

    def prepared(self, writer: Writer, run: KernelLaunch) -> Prepared | None:
        executable = self.executables[run.kernel]
        ready = executable.ready([geometry_of(one) for one in run.operands], deterministic=self.deterministic)
        if ready.is_empty:
            return None
        arguments = executable.plan.arguments
        if ready.scratch is None or executable.plan.prints:
            if ready.open:
                raise LostError
            start = executable.launch(ready, lambda text: self.world().write(text))
            self._launch_alone(writer, run, start, executable.plan)
            return None
        fills = [
            (launch.WORD * (launch.FIRST_SLOT + argument.word), operand)
            for argument, operand in zip(arguments, run.operands, strict=True)
        ]
        return Prepared(
            ready.entry,
            ready.template,
            tuple(fills),
            ready.scratch,
            ready.threads,
            executable.plan,
            executable.image,
            open=ready.open,
        )

    def _launch_alone(self, writer: Writer, run: KernelLaunch, start: launch.Launch, plan: Plan) -> None:
        """A launch whose need of memory depends on numbers, which it looks at each time, or one that prints."""
        writer.flush()
        passed = [_passed(writer, operand) for operand in run.operands]
        writer.line(f"status = {writer.name('start', start)}({', '.join(passed)})")
        writer.line("if status != 0:")
        writer.line(f"    {writer.helper('fail_alone', _fail_alone)}({writer.name('plan', plan)}, status)")

    def begin(self, writer: Writer) -> None:
        if writer.memory.nbytes:
            writer.line("try:")
            writer.line(f"    arena = {writer.helper('pop', arenas.FREE.pop)}()")
            writer.line("except IndexError:")
            writer.line(f"    arena = {writer.helper('nothing', arenas.NOTHING)}")
            nbytes = writer.helper("nbytes", writer.memory.nbytes)
            writer.line(f"if arena.nbytes < {nbytes}:")
            writer.line(f"    arena = {writer.helper('larger', arenas.larger)}({nbytes})")
        for number, buffer in enumerate(writer.buffers.results):
            fresh = writer.name("fresh", made(_fresh_maker, buffer.dtype, buffer.shape))
            writer.result(number, buffer, f"{fresh}()")

    def grouped(self, writer: Writer, prepared: Sequence[Prepared]) -> Sequence[Prepared]:
        return prepared

    def after(self, writer: Writer, prepared: Sequence[Prepared]) -> None:
        """A sequence is done when its call returns."""

    def end(self, writer: Writer) -> None:
        if writer.memory.nbytes:
            writer.line(f"{writer.helper('push', arenas.FREE.append)}(arena)")

    def meta(self, buffer: BufferSlice) -> Meta:
        """The meta of a result."""
        return made(_fresh_meta, buffer.dtype, buffer.shape)

    def constant(self, data: bytes) -> int:
        found = self._constants.get(data)
        if found is None:
            found = self._constants[data] = aligned_copy(np.frombuffer(data or b"\0", np.uint8))
        return data_address(found)

    def arena_text(self) -> tuple[str, str]:
        return "arena", "array"

    def fail(self, plans: Sequence[Plan], status: tuple[int, ...], *_: object) -> None:
        raise plans[status[1]].failures[status[0] - 1].error()

    def act(self, act: Move | Draw | Load | Save | Show | Combine) -> Callable[..., None]:
        world = self.world
        match act:
            case Move(target, source):
                return _mover(target, source)
            case Draw(target, distribution):

                def draw(at: int) -> None:
                    array_at(at, target)[...] = world().draw(distribution, target.dtype, target.shape)

                return draw
            case Load(target, slot):

                def load(at: int) -> None:
                    array_at(at, target)[...] = world().slots.get(slot, 0)

                return load
            case Save(source, slot):

                def save(at: int) -> None:
                    world().slots[slot] = np.array(array_at(at, source))

                return save
            case Show(label, source):

                def show(at: int) -> None:
                    world().show(label, array_at(at, source))

                return show
            case Combine(target, source, kind, axis):

                def combine(to: int, at: int) -> None:
                    # A copy: other ranks look at it when this one may be elsewhere.
                    mine = np.array(array_at(at, source))
                    array_at(to, target)[...] = world().combine(kind, axis, source.dtype, mine)

                return combine

    def truth(self, buffer: BufferSlice) -> Callable[..., bool]:
        def read(at: int) -> bool:
            return bool(array_at(at, buffer).any())

        return read


def _fresh_maker(dtype: DType, shape: tuple[int, ...]) -> Callable[[], Array]:
    return Fresh.of(dtype, shape).maker()


def _fresh_meta(dtype: DType, shape: tuple[int, ...]) -> Meta:
    return Fresh.of(dtype, shape).meta


def geometry_of(operand: BufferSlice | Given | Known) -> Geometry | None:
    """Sizes and strides of an operand that is an array."""
    return (operand.shape, operand.strides) if isinstance(operand, BufferSlice) else None


def array_at(address: int, buffer: BufferSlice) -> Array:
    """An array of the host at an address, with the sizes and strides of a buffer."""
    storage = buffer.dtype.storage
    strides = tuple(stride * storage.itemsize for stride in buffer.strides)
    low, high = span_of(address, buffer.shape, strides, storage.itemsize)
    memory: Any = (ctypes.c_char * max(high - low, 1)).from_address(low)
    return np.ndarray(buffer.shape, storage, memory, address - low, strides)


def _mover(target: BufferSlice, source: BufferSlice) -> Callable[..., None]:
    nbytes = target.nbytes
    if target.is_plain and source.is_plain:

        def move(to: int, at: int) -> None:
            if to != at:  # an argument that was given away is its result
                ctypes.memmove(to, at, nbytes)

        return move

    def arrange(to: int, at: int) -> None:
        array_at(to, target)[...] = array_at(at, source)

    return arrange


def _passed(writer: Writer, operand: BufferSlice | Given | Known) -> str:
    if isinstance(operand, Known):
        return repr(operand.value)
    return f"v{operand.number}" if isinstance(operand, Given) else writer.address(operand)


def _fail_alone(plan: Plan, status: tuple[int, ...]) -> None:
    if status[0] == -12:
        raise ResourceError(f"@{plan.name}: scratch memory cannot be had", hint="use fewer threads or smaller blocks")
    raise plan.failures[status[0] - 1].error()
