"""Recordings: sequences of launches as executable graphs, made of launch plans, for calls whose addresses may change.

A recording belongs to one call at a time. Its state is words on the host: what the driver was told of
each node. A call compares what it has with that, tells the driver about the nodes that are not as they were, and
replays; `host_steps.ll` does all of this. Nodes are made with no addresses at all: the first call puts them in.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from tessera.compiler.launch_plan import WORD
from tessera.runtime.cuda import driver
from tessera.runtime.cuda.context import Context
from tessera.runtime.cuda.executable import zero
from tessera.runtime.cuda.launching import BLOCKS_WORD, FIRST_WORD, STREAM_WORD, HostBlock, steps_on_host
from tessera.runtime.cuda.pool import Pool
from tessera.runtime.cuda.streams import Stream
from tessera.runtime.device.memory import DeviceMemory
from tessera.runtime.native import launch as host_launch

# What the driver takes for a node: function, blocks, threads, shared memory, parameters, and what is not used here.
_NODE = struct.Struct("<Q7I4x4Q")
_FUNCTION, _THREADS, _SHARED = 9, 12, 13
# An edge by which the next kernel may be brought to the processors as soon as the one before lets it: from port 1, of
# the type 1, which are CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC and CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC.
_EARLY = bytes([1, 0, 1, 0, 0, 0, 0, 0])
_HEAD = 3  # words of a node's state in front of its params block
GRAPH_WORD = 9


def address_of(call: Any) -> int:
    """Where a function of the driver is."""
    return ctypes.cast(call, ctypes.c_void_p).value or 0


class Node(NamedTuple):
    """A launch that became a node: the words of its step, and where its part of the state begins, in bytes.

    One that `follows` waits by itself for those in front of it.
    """

    template: bytes
    params: bytes
    at: int
    follows: bool = False


class Score:
    """The content of recordings of one program: for each graph its nodes, in order."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.graphs: list[list[Node]] = []
        self.nbytes = 0
        self.workspace = 0
        self.counters = 0
        """Bytes that kernels want zeroed, and leave so."""

    def graph(
        self, blocks: Sequence[tuple[bytes, int, bool]]
    ) -> tuple[list[tuple[int, bytes, int]], tuple[int, bytes, int]]:
        """A graph of launches: the templates of their steps, the bytes of their params blocks, whether they follow.

        Gives what runs instead of them, then what replays: entry, template, and where their state is.
        """
        calls, image = self.context.calls, steps_on_host()
        start, nodes = self.nbytes, list[Node]()
        self.nbytes += WORD
        set_node = struct.pack("<Q", address_of(calls.set_node))
        for template, nbytes, follows in blocks:
            first = WORD * FIRST_WORD
            step = (
                template[: WORD * host_launch.FIRST_SLOT] + set_node + template[WORD * (host_launch.FIRST_SLOT + 1) :]
            )
            nodes.append(Node(step, template[first : first + nbytes], self.nbytes, follows))
            self.nbytes += WORD * _HEAD + nbytes
        self.graphs.append(nodes)
        replay = bytearray(WORD * (STREAM_WORD + 1))
        struct.pack_into("<Q", replay, WORD * host_launch.FIRST_SLOT, address_of(calls.launch_graph))
        entry = image.address("node_on_device")
        steps = [(entry, node.template, node.at) for node in nodes]
        return steps, (image.address("graph_on_device"), bytes(replay), start)

    def recording(self, stream: Stream) -> Recording:
        """One to be replayed on a stream."""
        return Recording(self, stream)


def params_bytes(block: HostBlock) -> int:
    """How many bytes of a launch's step are its params block."""
    (table_at,) = struct.unpack_from("<q", block.template, WORD * (FIRST_WORD - 1))
    return table_at - WORD * FIRST_WORD


class Recording:
    """Executable graphs of one program, with memory of their own; `state` and `base` are addresses."""

    __slots__ = ("_graphs", "_held", "_instances", "_memory", "base", "context", "counters", "state")

    def __init__(self, score: Score, stream: Stream) -> None:
        self.context = score.context
        self._instances: list[int] = []
        self._graphs: list[int] = []
        self._memory = ctypes.create_string_buffer(max(score.nbytes, 1))
        self.state = ctypes.addressof(self._memory)
        self._held: list[DeviceMemory] = []
        self.base = self._allocated(stream, score.workspace)
        self.counters = self._allocated(stream, score.counters, zeroed=True)
        with self.context:
            for nodes in score.graphs:
                self._instantiate(nodes)

    def _allocated(self, stream: Stream, nbytes: int, *, zeroed: bool = False) -> int:
        if not nbytes:
            return 0
        memory = Pool.of(self.context).allocate(stream, nbytes)
        self._held.append(memory)
        if zeroed:
            zero(memory, nbytes, stream)
        return memory.address

    def _instantiate(self, nodes: Sequence[Node]) -> None:
        calls, doing = self.context.calls, f"preparing a graph of {len(nodes)} launches on cuda:{self.context.index}"

        def made(call: Any, *given: Any) -> int:
            found = ctypes.c_void_p()
            driver.check_status(call(ctypes.addressof(found), *given), doing)
            return found.value or 0

        graph = made(calls.create_graph, 0)
        self._graphs.append(graph)
        handles: list[int] = []
        for node in nodes:
            params = ctypes.create_string_buffer(node.params, len(node.params))
            listed = ctypes.c_void_p(ctypes.addressof(params))
            words = struct.unpack_from(f"<{FIRST_WORD}q", node.template)
            sizes = (words[BLOCKS_WORD], 1, 1, words[_THREADS], 1, 1, words[_SHARED])
            packed = ctypes.create_string_buffer(
                _NODE.pack(words[_FUNCTION], *sizes, ctypes.addressof(listed), 0, 0, 0), _NODE.size
            )
            before = ctypes.c_void_p(handles[-1] if handles else 0)
            add_edges = calls.add_edges if handles and node.follows else None
            after = ctypes.addressof(before) if handles and add_edges is None else None
            handle = made(calls.add_node, graph, after, 0 if after is None else 1, ctypes.addressof(packed))
            if add_edges is not None:
                edge, new = ctypes.create_string_buffer(_EARLY, len(_EARLY)), ctypes.c_void_p(handle)
                ends = [ctypes.addressof(one) for one in (before, new, edge)]
                driver.check_status(add_edges(graph, *ends, 1), doing)
            handles.append(handle)
        instance = made(calls.instantiate_graph, graph, 0)
        self._instances.append(instance)
        struct.pack_into("<Q", self._memory, nodes[0].at - WORD, instance)
        for node, handle in zip(nodes, handles, strict=True):
            struct.pack_into("<QQq", self._memory, node.at, instance, handle, len(node.params) // WORD)
            ctypes.memmove(self.state + node.at + WORD * _HEAD, node.params, len(node.params))

    def __del__(self) -> None:
        if hasattr(self, "_memory"):
            self.context.at_end(self._destroy)

    def _destroy(self) -> None:
        for instance in self._instances:
            self.context.calls.destroy_instance(instance)
        for graph in self._graphs:
            self.context.calls.destroy_graph(graph)
