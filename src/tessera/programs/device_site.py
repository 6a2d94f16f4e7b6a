"""Programs on a GPU: their arenas, launches and copies, all in the order of the current stream.

An arena belongs to a stream. A call takes it while it launches, and puts it back when all its kernels are in the queue
of the stream: the next to take it comes later on the same stream, and threads that launch at once have one each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from tessera.compiler.launch_plan import MAP_BYTES, WORD, Plan
from tessera.errors import EffectError
from tessera.interpreters.core.machine import Machine
from tessera.programs.buffer_assignment import BufferSlice, Combine, Draw, KernelLaunch, Load, Move, Save, Show
from tessera.programs.call_codegen import Extra, Prepared, Source, Writer
from tessera.programs.row_alignment import RowAlignment
from tessera.runtime.cuda import driver
from tessera.runtime.cuda.context import Context
from tessera.runtime.cuda.executable import CudaExecutable, finish, note, take_report, zeroed_counters
from tessera.runtime.cuda.gather import gather
from tessera.runtime.cuda.launching import Geometry, host_block, steps_on_host
from tessera.runtime.cuda.pool import Pool, note_use, rounded
from tessera.runtime.cuda.recordings import params_bytes
from tessera.runtime.cuda.results import maker
from tessera.runtime.cuda.staging import Staging
from tessera.runtime.cuda.streams import SEVERAL, Stream, current_stream, current_streams, default_stream
from tessera.runtime.cuda.tensor_maps import ARRAY_WORD, MAP_WORD, MapKind, Sized, Together
from tessera.runtime.device.device import Buffer, Device
from tessera.runtime.device.memory import ALIGNMENT, Array, aligned, aligned_empty, contiguous_strides, data_address
from tessera.runtime.native import launch as host_launch
from tessera.runtime.native import sequence
from tessera.runtime.tensor.meta import Meta
from tessera.shapes.tracked import counted, made

if TYPE_CHECKING:
    from tessera.runtime.device.memory import DeviceMemory

_NOTHING = (0, 0, None)


@dataclass(eq=False)
class DeviceSite:
    """One GPU, for one bound program. `executable` gives a kernel by its number and by how rows of its arrays lie."""

    given = "stream, "

    executable: Callable[[int, tuple[int, ...]], CudaExecutable]
    world: Callable[[], Machine]
    device: Device
    alignments: Sequence[int]

    def __post_init__(self) -> None:
        self.context = Context.of(self.device.index)
        self._constants: dict[bytes, DeviceMemory] = {}
        self._reports: list[tuple[str, str]] = []
        """Records of what went wrong in launches that are waited for, and their plans, by name."""
        self._encoded: list[tuple[MapKind, Prepared]] = []
        """The tensor maps of launches that wait to be a sequence, and what makes each."""
        self._groups = 0

    # Launches

    def prepared(self, writer: Writer, run: KernelLaunch) -> Prepared | None:
        lines = RowAlignment(writer.buffers, self.alignments).lines(run)
        executable = self.executable(run.kernel, lines)
        geometry = [Geometry(one.shape, one.strides) if isinstance(one, BufferSlice) else None for one in run.operands]
        ready = executable.ready(geometry, self.device)
        if not ready.blocks:
            return None
        block, plan, launch = (
            host_block(ready.params, ready.function, ready.blocks),
            executable.plan,
            ready.params.device,
        )
        sources: list[Source] = [*run.operands, Extra("stream.handle", "i64")]
        if launch.counters_word >= 0:
            sources.append(Extra(self._counters(writer, launch.counters), "i64"))
        if launch.report_word >= 0:
            sources.append(Extra(f"{self._report(writer, plan)}.pointer", "i64"))
        for recipe, sized in zip(launch.maps, ready.maps, strict=True):
            buffer = run.operands[recipe.argument]
            assert isinstance(buffer, BufferSlice)
            sources.append(self._map(sized, buffer, plan))
        fills = [(host_launch.WORD * slot, source) for (_, slot), source in zip(block.arguments, sources, strict=True)]
        return Prepared(
            block.entry, block.template, tuple(fills), 0, 1, plan, block.keep, params_bytes(block), tuple(block.open)
        )

    def _write(self, text: str) -> None:
        self.world().write(text)

    def _counters(self, writer: Writer, nbytes: int) -> str:
        zeroed = writer.helper("zeroed", zeroed_counters)
        writer.line(f"counters{nbytes} = stream.counters.get({nbytes}) or {zeroed}(stream, {nbytes})")
        return f"counters{nbytes}"

    def _report(self, writer: Writer, plan: Plan) -> str:
        name, take, device = f"report{len(self._reports)}", writer.helper("take", take_report), self.device
        named = writer.name("plan", plan)
        self._reports.append((name, named))
        writer.line(f"{name} = {take}({writer.helper('device', device)}, {named})")
        return name

    def _map(self, sized: Sized, buffer: BufferSlice, plan: Plan) -> Extra:
        """A tensor map: it is made with all others of a sequence, each a step of another sequence."""
        added = MAP_BYTES * len(self._encoded)
        block, opened = sized.block()
        fills = ((WORD * MAP_WORD, Extra("made", "array", added)), (WORD * ARRAY_WORD, buffer))
        code = steps_on_host()
        step = Prepared(code.address("encode_map"), block, fills, 0, 1, plan, code, open=tuple(opened))
        self._encoded.append((sized.kind, step))
        return Extra(f"maps{self._groups}", "array", added)

    def _make_maps(self, writer: Writer) -> None:
        """Lines that find the maps of a sequence, or make them: those of addresses that come again are kept."""
        encoded, self._encoded = self._encoded, []
        if not encoded:
            return
        values: dict[tuple[str, str], int] = {("made", "array"): 0}
        steps = [writer.step(one, values) for _, one in encoded]
        encode = sequence.make(steps, [kind for _, kind in values], keep=steps_on_host())
        together = writer.name("together", made(Together, tuple(kind for kind, _ in encoded), encode))
        address = writer.helper("address", data_address)
        given = [(text, f"{address}({text})" if kind == "array" else text) for text, kind in list(values)[1:]]
        name = f"maps{self._groups}"
        self._groups += 1
        writer.line(f"key = ({''.join(f'{one}, ' for _, one in given)})")
        writer.line(f"{name} = {together}.get(key)")
        writer.line(f"if {name} is None:")
        writer.line(f"    {name} = {together}.of({', '.join(['key', *[text for text, _ in given]])})")

    # Beginning and end

    def begin(self, writer: Writer) -> None:
        streams, default = (
            writer.helper("streams", current_streams),
            writer.helper("default", default_stream(self.device)),
        )
        writer.line(f"stream = {streams}().get({self.device.index}, {default})")
        writer.line("if stream.graph is not None:")
        writer.line(f"    {writer.helper('refuse', _refuse_graph)}()")
        self.take_arena(writer)
        for number, buffer in enumerate(writer.buffers.results):
            size = writer.name("size", counted(rounded, buffer.nbytes))
            storage = writer.name("storage", buffer.dtype.storage)
            fresh = f"{writer.helper('fresh', maker())}(stream, {size}, {writer.meta(number)}, {storage})"
            # What several streams look at, this one may not overwrite when it likes.
            writer.result(number, buffer, fresh, f"not {writer.helper('several', SEVERAL)}", whole=True)

    def take_arena(self, writer: Writer) -> None:
        """Lines that make `base` the address of memory for temporary arrays."""
        if writer.memory.nbytes:
            nbytes = writer.helper("nbytes", writer.memory.nbytes)
            writer.line("try:")
            writer.line("    arena = stream.arenas.pop()")
            writer.line("except IndexError:")
            writer.line(f"    arena = {writer.helper('nothing', _NOTHING)}")
            writer.line(f"if arena[1] < {nbytes}:")
            writer.line(f"    arena = {writer.helper('larger', _larger)}(stream, {nbytes})")
            writer.line("base = arena[0]")

    def put_arena(self, writer: Writer) -> None:
        """Lines that put it back."""
        if writer.memory.nbytes:
            writer.line("stream.arenas.append(arena)")

    def grouped(self, writer: Writer, prepared: Sequence[Prepared]) -> Sequence[Prepared]:
        self._make_maps(writer)
        return prepared

    def after(self, writer: Writer, prepared: Sequence[Prepared]) -> None:
        write = "" if not self._reports else f", {writer.helper('write', self._write)}"
        for name, plan in self._reports:
            writer.line(f"{writer.helper('finish', finish)}({plan}, stream, {name}{write})")
        self._reports.clear()

    def end(self, writer: Writer) -> None:
        self.put_arena(writer)
        arrays = [
            f"v{number}.geometry" for number, one in enumerate(writer.buffers.arguments) if isinstance(one, BufferSlice)
        ]
        if arrays:
            writer.line(f"if {writer.helper('several', SEVERAL)}:")
            writer.line(f"    {writer.helper('note', note)}(stream, ({', '.join(arrays)},))")

    def meta(self, buffer: BufferSlice) -> Meta:
        """The meta of a result."""
        return made(Meta, buffer.dtype, buffer.shape, contiguous_strides(buffer.shape, 1), self.device, ALIGNMENT)

    def constant(self, data: bytes) -> int:
        found = self._constants.get(data)
        if found is None:
            stream = current_stream(self.device)
            found = self._constants[data] = Pool.of(self.context).allocate(stream, max(len(data), 1))
            array = aligned(np.frombuffer(data or b"\0", np.uint8))
            Staging.of(self.context).to_device(found.address, data_address(array), array.nbytes, stream)
            stream.synchronize()  # any stream may read it from now on
            note_use(found, None)
        return found.address

    def arena_text(self) -> tuple[str, str]:
        return "base", "i64"

    def fail(
        self,
        stream: Stream,
        plans: Sequence[Plan],
        status: tuple[int, ...],
        again: Callable[..., Any],
        passed: Sequence[Any],
    ) -> None:
        """Tries again where this thread has not used the GPU before: then nothing has been launched yet."""
        code, number = status[0], status[1]
        if code in driver.CONTEXT_STATUSES and self.may_try_again(number):
            self.context.settle()
            with self.context:
                found = again(*passed)
            if found == 0:
                return
            code, number = found[0], found[1]
        stream.counters.clear()
        driver.refuse(code, f"launching @{plans[number].name} on {self.device}")

    def may_try_again(self, number: int) -> bool:
        """Whether nothing has been launched when launch `number` of a sequence is refused."""
        return number == 0

    # What is no kernel

    def act(self, act: Move | Draw | Load | Save | Show | Combine) -> Callable[..., None]:
        world = self.world
        match act:
            case Move(target, source):
                return self._mover(target, source)
            case Draw(target, distribution):

                def draw(stream: Stream, at: int) -> None:
                    self._put(stream, at, world().draw(distribution, target.dtype, target.shape))

                return draw
            case Load(target, slot):

                def load(stream: Stream, at: int) -> None:
                    held = world().slots.get(slot)
                    array = np.zeros(target.shape, target.dtype.storage) if held is None else held
                    self._put(stream, at, array)

                return load
            case Save(source, slot):

                def save(stream: Stream, at: int) -> None:
                    world().slots[slot] = self._got(stream, at, source)

                return save
            case Show(label, source):

                def show(stream: Stream, at: int) -> None:
                    world().show(label, self._got(stream, at, source))

                return show
            case Combine(target, source, kind, axis):

                def combine(stream: Stream, to: int, at: int) -> None:
                    found = world().combine(kind, axis, source.dtype, self._got(stream, at, source))
                    self._put(stream, to, found)

                return combine

    def truth(self, buffer: BufferSlice) -> Callable[..., bool]:
        def read(stream: Stream, at: int) -> bool:
            return bool(self._got(stream, at, buffer).any())

        return read

    def _mover(self, target: BufferSlice, source: BufferSlice) -> Callable[..., None]:
        index, nbytes = self.device.index, target.nbytes
        on_device = self.context.calls.on_device

        def move(stream: Stream, to: int, at: int) -> None:
            if not nbytes or to == at:  # an argument that was given away is its result
                return
            if source.is_plain:
                with stream.context:
                    driver.check_status(on_device(to, at, nbytes, stream.handle), f"copying {nbytes:,} bytes")
            else:
                gather(index, to, self._array(at, source), stream.handle)

        return move

    def _array(self, at: int, buffer: BufferSlice) -> Array:
        """An array that describes memory of the GPU."""
        itemsize = buffer.dtype.storage.itemsize
        strides = tuple(stride * itemsize for stride in buffer.strides)
        return Buffer(at, 0, self.device, None).array(buffer.dtype.storage, buffer.shape, strides)

    def _put(self, stream: Stream, at: int, array: Array) -> None:
        plain = aligned(np.ascontiguousarray(array))
        if plain.nbytes:
            Staging.of(self.context).to_device(at, data_address(plain), plain.nbytes, stream)

    def _got(self, stream: Stream, at: int, buffer: BufferSlice) -> Array:
        """The elements on the host; waits for them."""
        found = aligned_empty(buffer.shape, buffer.dtype.storage)
        if not found.nbytes:
            return found
        source, held = at, None
        if not buffer.is_plain:
            held = Pool.of(self.context).allocate(stream, found.nbytes)
            gather(self.device.index, held.address, self._array(at, buffer), stream.handle)
            source = held.address
        Staging.of(self.context).to_host(data_address(found), source, found.nbytes, stream)
        return found


def _larger(stream: Stream, nbytes: int) -> tuple[int, int, object]:
    """An arena of so many bytes, to replace one that is too small: that one goes back in the order of the stream."""
    memory = Pool.of(stream.context).allocate(stream, nbytes)
    return memory.address, nbytes, memory


def _refuse_graph() -> NoReturn:
    raise EffectError(
        "a program cannot be recorded in a graph: its arena serves other calls, too",
        hint="record calls of kernels, or call the program outside of the recording",
    )
