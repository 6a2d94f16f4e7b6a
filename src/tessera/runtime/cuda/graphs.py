"""CUDA graphs: launches recorded once and replayed with one call to the driver.

Nothing is captured from streams. While a `with Graph():` is around it, a kernel that is called becomes a node, made of
its launch plan, behind the one before it. Results belong to the graph: each replay writes them anew.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from tessera.compiler.launch_plan import ArrayArgument
from tessera.errors import DeviceError, EffectError, ShapeError, TesseraError
from tessera.runtime.cuda import driver
from tessera.runtime.cuda.backend import note_array
from tessera.runtime.cuda.context import Context
from tessera.runtime.cuda.executable import BoundKernel, Report, launching, return_report, take_report, zero
from tessera.runtime.cuda.pool import Pool
from tessera.runtime.cuda.streams import Stream, cuda_device, current_stream
from tessera.runtime.device.device import Device
from tessera.runtime.device.memory import Array, DeviceMemory, address, byte_span, is_array
from tessera.runtime.tensor.tensor import Tensor
from tessera.shapes.expr import format_shape


@dataclass(eq=False)
class Node:
    """A launch in a graph: its program, and the arrays and numbers that it was given, results last."""

    bound: BoundKernel
    values: list[Any]
    handle: Any
    counters: DeviceMemory | None
    report: Report | None
    changed: bool = False

    @property
    def name(self) -> str:
        return self.bound.plan.name

    def params(self, cu: Any, keep: list[object]) -> Any:
        """The launch as the driver takes it; what it refers to goes into `keep`."""
        bound, launch = self.bound, self.bound.params.device
        extra = [self.counters.address] if self.counters is not None else []
        extra += [self.report.pointer] if self.report is not None else []
        block = bound.params.filled(self.values, extra, bound.maps_of(self.values))
        pointers = ctypes.c_void_p(ctypes.addressof(block))
        keep += [block, pointers]
        found = cu.CUDA_KERNEL_NODE_PARAMS()
        found.func = cu.CUfunction(bound.function.handle)
        found.gridDimX, found.gridDimY, found.gridDimZ = bound.blocks, 1, 1
        found.blockDimX, found.blockDimY, found.blockDimZ = launch.threads, 1, 1
        found.sharedMemBytes = launch.shared
        found.kernelParams = ctypes.addressof(pointers)
        return found


class Graph:
    """Launches to be replayed.

    with Graph() as graph:
        y = kernel(x)
    graph.replay()  # y now holds what the kernel makes of x
    graph.update((x, other))  # from now on of another array of the same kind
    """

    def __init__(self, device: str | Device | None = None) -> None:
        self.device = cuda_device(device)
        self.context = Context.of(self.device.index)
        self.nodes: list[Node] = []
        self._cu = driver.bindings()
        with self.context:
            self._graph = driver.check(self._cu.cuGraphCreate(0), f"making a graph of {self.device}")
        self._executable: Any = None
        self._stream: Stream | None = None
        self._noted: set[int] = set()

    # Recording

    def __enter__(self) -> Self:
        if self._executable is not None or self._stream is not None:
            raise EffectError("a graph is recorded once", hint="record another: with Graph() as graph: ...")
        stream = current_stream(self.device)
        if stream.graph is not None:
            raise EffectError("a graph cannot be recorded within another", hint="record one after the other")
        self._stream = stream.recording(self)
        self._stream.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        assert self._stream is not None
        self._stream.__exit__()
        self._stream = None
        if kind is None:
            self._instantiate()

    def record(self, bound: BoundKernel, values: Sequence[Any]) -> Any:
        """Puts a launch behind those recorded so far; gives the results that it will write."""
        if bound.device is not self.device or self._stream is None:
            raise DeviceError(
                f"@{bound.plan.name} runs on {bound.device}, and a graph of {self.device} is being recorded",
                hint="record a graph for each GPU",
            )
        results = [make(self._stream) for make in bound.fresh]
        launch = bound.params.device
        if bound.blocks:
            node = Node(bound, [*values, *results], None, None, None)
            if launch.counters_word >= 0:
                node.counters = self._zeroed(launch.counters)
            if launch.report_word >= 0:
                node.report = take_report(bound.device, bound.plan)
            before = [self.nodes[-1].handle] if self.nodes else []
            keep: list[object] = []
            with self.context:
                made = self._cu.cuGraphAddKernelNode(self._graph, before, len(before), node.params(self._cu, keep))
            node.handle = driver.check(made, f"recording: {launching(bound)}")
            self.nodes.append(node)
        return bound.results(results)

    def _zeroed(self, nbytes: int) -> DeviceMemory:
        assert self._stream is not None
        memory = Pool.of(self.context).allocate(self._stream, nbytes)
        zero(memory, nbytes, self._stream)
        return memory

    def _instantiate(self) -> None:
        with self.context:
            made = self._cu.cuGraphInstantiate(self._graph, 0)
        self._executable = driver.check(made, f"preparing a graph of {len(self.nodes)} launches on {self.device}")

    # Replaying

    def replay(self) -> None:
        """Runs all launches on the current stream. It waits only where a kernel can report a failure."""
        stream = current_stream(self.device)
        if self._executable is None or stream.graph is not None:
            raise EffectError("this graph is not recorded yet", hint="replay it behind the `with` statement")
        with self.context as context:
            status = context.calls.launch_graph(int(self._executable), stream.handle)
        driver.check_status(status, f"replaying a graph of {len(self.nodes)} launches on {self.device}")
        if stream.handle not in self._noted:
            self._noted.add(stream.handle)
            for node in self.nodes:
                self._note(node, stream)
        for node in self.nodes:
            if node.report is not None:
                self._check(node.report, node, stream)

    def _note(self, node: Node, stream: Stream) -> None:
        for value in node.values:
            if is_array(value):
                note_array(value, stream)

    def _check(self, report: Report, node: Node, stream: Stream) -> None:
        try:
            report.check(node.bound.plan, stream)
        except TesseraError:
            if node.counters is not None:  # it may have stopped before it had put them back to zero
                zero(node.counters, node.bound.params.device.counters, stream)
            raise

    # Changing

    def update(self, *pairs: tuple[Tensor, Tensor]) -> None:
        """From the next replay on, the second of each pair is used wherever the first, or a view of it, was.

        The two have the same dtype, shape, strides and device. The graph keeps the new one alive, and lets go of the
        old one where nothing of it is left.
        """
        for old, new in pairs:
            self._check_pair(old, new)
        for node in self.nodes:
            for index, value in enumerate(node.values):
                if is_array(value):
                    found = _moved(value, pairs)
                    if found is not None:
                        self._check_written(node, index, found)
                        node.values[index] = found
                        node.changed = True
        self._apply()

    def set_number(self, node: Node, index: int, value: float) -> None:
        """From the next replay on, a launch has another number as argument `index`."""
        if index >= len(node.bound.plan.inputs) or isinstance(node.bound.plan.arguments[index], ArrayArgument):
            raise ShapeError(
                f"argument {index} of @{node.name} is no number", hint="arrays are exchanged by update((old, new))"
            )
        node.values[index] = value
        node.changed = True
        self._apply()

    def _apply(self) -> None:
        for node in self.nodes:
            if not node.changed:
                continue
            keep: list[object] = []
            with self.context:
                status = self._cu.cuGraphExecKernelNodeSetParams(
                    self._executable, node.handle, node.params(self._cu, keep)
                )
            driver.check(status, f"changing @{node.name} in a graph of {self.device}")
            node.changed = False
            for handle in self._noted:
                self._note(node, Stream.wrap(handle, self.device))

    def _check_pair(self, old: Tensor, new: Tensor) -> None:
        a, b = old.meta, new.meta
        if (a.dtype, a.shape, a.strides, a.device) != (b.dtype, b.shape, b.strides, b.device):
            raise ShapeError(
                "a graph takes another tensor only if it has the same dtype, shape, strides and device",
                shapes=[
                    f"{format_shape(one.shape)} of {one.dtype}, strides {format_shape(one.strides)}, on {one.device}"
                    for one in (a, b)
                ],
                hint="give a tensor of the same kind, or record another graph",
            )
        if b.alignment < a.alignment:
            raise ShapeError(
                f"the new tensor is aligned to {b.alignment} bytes, the old one was to {a.alignment}",
                hint="give a copy: .copy()",
            )

    def _check_written(self, node: Node, index: int, found: Array) -> None:
        argument = node.bound.plan.arguments[index]
        if isinstance(argument, ArrayArgument) and argument.written and not found.flags.writeable:
            raise EffectError(
                f"argument {index} of @{node.name} is written, and the new tensor is read-only",
                hint="give a writable tensor, such as a copy",
            )

    def __del__(self) -> None:
        if hasattr(self, "_executable"):
            self.context.at_end(self._destroy)
            for node in self.nodes:
                if node.report is not None:
                    return_report(node.report)

    def _destroy(self) -> None:
        if self._executable is not None:
            self._cu.cuGraphExecDestroy(self._executable)
        self._cu.cuGraphDestroy(self._graph)


def _moved(value: Array, pairs: Sequence[tuple[Tensor, Tensor]]) -> Array | None:
    """The array that replaces `value`, which may be a view of an old tensor; None where nothing changes."""
    low, high = byte_span(value)
    for old, new in pairs:
        first, last = byte_span(old.geometry)
        if low < high and first <= low and high <= last:
            # The old and the new have the same strides, so what lies at a distance in one lies there in the other.
            offset = address(value) - old.pointer + new.pointer - new.buffer.pointer
            moved = new.buffer.array(value.dtype, value.shape, value.strides, offset)
            moved.flags.writeable = new.writable and moved.flags.writeable
            return moved
    return None
