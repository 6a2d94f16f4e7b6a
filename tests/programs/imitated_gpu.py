"""A GPU that is none: the driver's calls on memory of the host, kernels run by the interpreter of tile programs.

Everything above the driver is the real thing: plans and code of sm_90a, params blocks, streams, the pool, sequences.
"""

from __future__ import annotations

import ctypes
import itertools
import struct
from collections.abc import Callable
from threading import Lock
from types import SimpleNamespace
from typing import Any, Self
from weakref import WeakValueDictionary

import numpy as np
import pytest

from tessera.compiler.launch_plan import ArrayArgument, Plan
from tessera.interpreters.levels.tile import run_kernel
from tessera.programs import code
from tessera.programs import machine_code as compiling
from tessera.runtime.cuda import tensor_maps
from tessera.runtime.cuda.context import Context
from tessera.runtime.cuda.executable import CudaExecutable
from tessera.runtime.cuda.pool import Pool
from tessera.runtime.cuda.staging import Staging
from tessera.runtime.cuda.streams import _defaults  # pyright: ignore[reportPrivateUsage]  (the one that is made anew)
from tessera.runtime.device.device import Device
from tessera.runtime.device.memory import span_of

_LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    *[ctypes.c_uint] * 7,
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.c_void_p,
)
_SET_NODE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_LAUNCH_GRAPH = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_ENCODE = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint, *[ctypes.c_void_p] * 5, *[ctypes.c_int] * 4
)
_NODE = struct.Struct("<Q7I4x4Q")
_OUT_OF_CONTEXT = 201


class Imitation:
    """The driver. `launched` are the names of kernels in order; `lost` calls fail first, as on a thread that is new.

    So do `lost_maps` calls that make tensor maps.
    """

    def __init__(self) -> None:
        self.launched: list[str] = []
        self.lost = self.lost_maps = 0
        self.mapped: list[int] = []
        """The addresses that tensor maps were made for."""
        self.allocated: dict[int, Any] = {}
        self.kernels: dict[int, tuple[Plan, Any, str]] = {}
        self._numbers = itertools.count(1 << 20)
        self.launch = _LAUNCH(self._launch)
        self.encode_map = _ENCODE(self._encode_map)
        self.set_node, self.launch_graph = _SET_NODE(self._set_node), _LAUNCH_GRAPH(self._launch_graph)
        self.graphs: dict[int, list[int]] = {}
        self.nodes: dict[int, tuple[int, bytes]] = {}
        self.changed: list[int] = []
        """The nodes that the driver was told about, each time."""
        self.replayed: list[int] = []
        self.joined = self.early = 0
        """Edges to nodes that wait for the whole node in front of them, and to those that wait by themselves."""
        self.to_device = self.to_host = self.on_device = self._copy
        self.records: list[tuple[str, int, bytes]] | None = None
        """Called with each launch, if set: the kernel, how many blocks, and the params block."""

    def __getattr__(self, name: str) -> Callable[..., int]:
        """Calls about contexts, events and streams: all has happened already."""
        return _well

    def allocate(self, out: int, size: int, *_: int) -> int:
        memory = ctypes.create_string_buffer(size + 512)
        address = -(-ctypes.addressof(memory) // 512) * 512
        ctypes.memset(address, 0xFF, size)  # memory that was not written is NaN
        self.allocated[address] = memory
        ctypes.c_uint64.from_address(out).value = address
        return 0

    allocate_host = allocate

    def free(self, pointer: int, stream: int) -> int:
        del self.allocated[pointer]
        return 0

    def _encode_map(self, out: int, kind: int, rank: int, pointer: int, *more: int) -> int:
        """Writes all that the driver is told, one after the other."""
        if self.lost_maps:
            self.lost_maps -= 1
            return _OUT_OF_CONTEXT
        self.mapped.append(pointer)
        sizes, strides, box, steps, interleave, swizzle, promoted, fill = more
        assert out % 64 == pointer % 16 == interleave == fill == 0
        assert ctypes.string_at(steps, 4 * rank) == struct.pack("<I", 1) * rank
        told = struct.pack("<4HQ", kind, rank, swizzle, promoted, pointer) + ctypes.string_at(sizes, 8 * rank)
        told += ctypes.string_at(strides, 8 * (rank - 1)) + ctypes.string_at(box, 4 * rank)
        ctypes.memmove(out, told + bytes(128 - len(told)), 128)
        return 0

    def fill_bytes(self, target: int, byte: int, size: int, stream: int) -> int:
        ctypes.memset(target, byte, size)
        return 0

    def create_event(self, out: int, flags: int) -> int:
        ctypes.c_uint64.from_address(out).value = next(self._numbers)
        return 0

    def _copy(self, target: int, source: int, size: int, stream: int) -> int:
        ctypes.memmove(target, source, size)
        return 0

    def loaded(self, executable: CudaExecutable, module: Any, name: str, context: Any) -> Any:
        """A kernel, instead of the one that the driver would load."""
        handle = next(self._numbers)
        self.kernels[handle] = executable.plan, module, name
        return SimpleNamespace(handle=handle, context=context, name=name)

    # Graphs: an instance is the graph itself, and has its nodes.

    def _made(self, out: int) -> int:
        number = ctypes.c_uint64.from_address(out).value = next(self._numbers)
        return number

    def create_graph(self, out: int, flags: int) -> int:
        self.graphs[self._made(out)] = []
        return 0

    def add_node(self, out: int, graph: int, before: int | None, count: int, params: int) -> int:
        nodes = self.graphs[graph]
        assert count <= min(len(nodes), 1)
        assert not count or ctypes.c_uint64.from_address(before or 0).value == nodes[-1]
        self.joined += count
        nodes.append(self._made(out))
        self._set(nodes[-1], params)
        return 0

    def add_edges(self, graph: int, before: int, after: int, data: int, count: int) -> int:
        """A kernel may begin when the one in front of it says so."""
        ends = [ctypes.c_uint64.from_address(one).value for one in (before, after)]
        assert ends == self.graphs[graph][-2:]
        assert (ctypes.string_at(data, 8), count) == (bytes([1, 0, 1, 0, 0, 0, 0, 0]), 1)
        self.early += 1
        return 0

    def instantiate_graph(self, out: int, graph: int, flags: int) -> int:
        ctypes.c_uint64.from_address(out).value = graph
        return 0

    def destroy_graph(self, graph: int) -> int:
        del self.graphs[graph]
        return 0

    def _set(self, node: int, params: int) -> None:
        function, *_, listed, extra, kernel, context = _NODE.unpack(ctypes.string_at(params, _NODE.size))
        assert (extra, kernel, context) == (0, 0, 0)
        block = ctypes.c_uint64.from_address(listed).value
        self.nodes[node] = function, ctypes.string_at(block, 8 * self.kernels[function][0].words)

    def _set_node(self, graph: int, node: int, params: int) -> int:
        if self.lost:
            self.lost -= 1
            return _OUT_OF_CONTEXT
        assert node in self.graphs[graph]
        self._set(node, params)
        self.changed.append(node)
        return 0

    def _launch_graph(self, graph: int, stream: int) -> int:
        if self.lost:
            self.lost -= 1
            return _OUT_OF_CONTEXT
        self.replayed.append(graph)
        for node in self.graphs[graph]:
            function, block = self.nodes[node]
            memory = ctypes.create_string_buffer(block, len(block))
            self._run(function, ctypes.addressof(memory))
        return 0

    def _launch(self, function: int, *rest: Any) -> int:
        if self.lost:
            self.lost -= 1
            return _OUT_OF_CONTEXT
        if self.records is not None:
            plan = self.kernels[function][0]
            self.records.append((plan.name, rest[0], ctypes.string_at(rest[8][0], plan.block_bytes)))
        self._run(function, rest[8][0])
        return 0

    def _run(self, function: int, block: int) -> None:
        plan, module, name = self.kernels[function]
        self.launched.append(plan.name)
        words = (ctypes.c_int64 * plan.words).from_address(block)
        values = [_value(one, words) for one in plan.arguments]
        run_kernel(module, name, values)


def _value(argument: Any, words: Any) -> Any:
    word = words[argument.word]
    if isinstance(argument, ArrayArgument):
        storage, rank = argument.dtype.storage, len(argument.shape)
        sizes = tuple(words[argument.word + 1 : argument.word + 1 + rank])
        strides = tuple(
            step * storage.itemsize for step in words[argument.word + 1 + rank : argument.word + 1 + 2 * rank]
        )
        low, high = span_of(word, sizes, strides, storage.itemsize)
        memory: Any = (ctypes.c_char * max(high - low, 1)).from_address(low)
        return np.ndarray(sizes, storage, memory, word - low, strides)
    if argument.kind in ("f32", "f64"):
        kind = np.float32 if argument.kind == "f32" else np.float64
        return float(np.frombuffer(np.int64(word).tobytes(), kind)[0])
    return bool(word) if argument.kind == "i1" else word


def _well(*_: object) -> int:
    return 0


class ImitatedContext:
    """A context that is always current."""

    index, handle = 0, 1
    properties = SimpleNamespace(capability=(9, 0), multiprocessors=3, memory=1 << 34, name="none")

    def __init__(self, calls: Imitation) -> None:
        self.calls = calls

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def settle(self) -> None:
        pass

    def be_current(self) -> None:
        pass

    def synchronize(self) -> None:
        pass

    def at_end(self, action: Callable[[], object]) -> None:
        action()


def imitate(monkeypatch: pytest.MonkeyPatch) -> Imitation:
    """From here on, to the end of a test, cuda:0 is an imitation."""
    found = Imitation()
    context: Any = ImitatedContext(found)
    pool = Pool.__new__(Pool)
    pool.context, pool.handle = context, 1
    pool._lists, pool._guard, pool._cap = [], Lock(), 1 << 30  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(Context, "_made", {0: context})
    monkeypatch.setattr(Pool, "_made", {0: pool})
    monkeypatch.setattr(Staging, "_made", {})
    monkeypatch.setattr(Device("cuda", 0), "_backend", None)
    monkeypatch.delitem(_defaults, 0, raising=False)
    modules: dict[bytes, tuple[Any, str]] = {}
    real = compiling.machine_code

    def machine_code(module: Any, kernel: Any, *rest: Any) -> Any:
        made = real(module, kernel, *rest)
        modules[made.code] = compiling.isolated(module, kernel.name), kernel.name
        return made

    monkeypatch.setattr(compiling, "machine_code", machine_code)
    # What is loaded here is not for others, and the other way round.
    monkeypatch.setattr(code, "_LOADED", WeakValueDictionary[str, Any]())

    def numbers(kind: str, swizzle: int, fetched: str) -> tuple[int, int, int]:
        return len(kind), swizzle, len(fetched)

    def loaded(self: CudaExecutable, index: int) -> Any:
        return found.loaded(self, *modules[self.ptx], context)

    monkeypatch.setattr(CudaExecutable, "_loaded", loaded)
    # The driver's numbers for types are the driver's; these are as good.
    monkeypatch.setattr(tensor_maps, "_numbers", numbers)
    return found
