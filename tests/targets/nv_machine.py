"""A machine that runs what the nv emitter writes, without a GPU: LLVM's text with inline PTX, all threads of a block.

Threads that are at the same block of the program go on together; those furthest back go first, so that they meet where
paths join. Every access to memory is checked: global memory must belong to an argument, and no two threads may touch a byte of
shared memory between barriers if one of them writes. Approximations of the hardware are exact here: how exact they
really are is measured on GPUs.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from nv_instructions import Array, instruction, storage, typed_constant
from xdsl.dialects.builtin import ModuleOp

from tessera.dialects.elements import dtype_of
from tessera.dialects.tile_types import ViewType
from tessera.interpreters.engine import symbol_in
from tessera.interpreters.tile import bind
from tessera.targets.cuda import dialect as nv
from tessera.targets.cuda.emit import emit
from tessera.targets.cuda.emitter import WORD, Emitted

WARP = 32
PARAMS = 1 << 40
"""Where the parameter lies."""


class MachineError(AssertionError):
    """What hardware would do wrong silently, or refuse."""


# The program


@dataclass
class Code:
    """A straight piece: instructions that all its threads do; it ends with a jump, or at a barrier."""

    label: str
    steps: list[Callable[[Block], None]] = field(default_factory=list)
    phis: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    barrier: bool = False
    jump: tuple[str | None, str, str] | None = None
    """A condition and two labels; no condition: the first label. None at the end of the program or at a barrier."""


@dataclass
class Program:
    codes: list[Code]
    places: dict[str, int]


_DEFINE = re.compile(r"define ptx_kernel void @(\S+)\((.*)\) #0.*\{$")
_PHI = re.compile(r"(%\S+) = phi (.+?) (\[.*)$")
_SIDE = re.compile(r"\[ (\S+), %(\S+) \]")


def parse(text: str) -> Program:
    """The one kernel of a module."""
    lines = text.split("\n")
    start = next(place for place, line in enumerate(lines) if _DEFINE.match(line))
    codes: list[Code] = []
    for line in lines[start + 1 :]:
        stripped = line.strip()
        if stripped == "}":
            break
        if not line.startswith(" ") and stripped.endswith(":"):
            codes.append(Code(stripped[:-1]))
        elif stripped:
            _add(codes, stripped)
    places: dict[str, int] = {}
    for place, code in enumerate(codes):
        places.setdefault(code.label, place)
    return Program(codes, places)


def _add(codes: list[Code], line: str) -> None:
    code = codes[-1]
    if found := _PHI.match(line):
        sides = {label: value for value, label in _SIDE.findall(found[3])}
        code.phis.append((found[1], found[2], sides))
    elif line.startswith("br label %"):
        code.jump = None, line.removeprefix("br label %"), ""
    elif line.startswith("br i1 "):
        condition, yes, no = line.split(", ")[:3]
        code.jump = condition.removeprefix("br i1 "), yes.removeprefix("label %"), no.removeprefix("label %")
    elif line == "ret void":
        return
    elif '"bar.sync 0;"' in line:
        code.barrier = True
        codes.append(Code(code.label))
    else:
        code.steps.append(instruction(line))


# Memory


@dataclass
class Memory:
    """Global memory: stretches of this process that arguments lie in."""

    stretches: list[tuple[int, int]] = field(default_factory=list)
    params: bytearray = field(default_factory=bytearray)

    def add(self, array: Array) -> int:
        low, high = np.lib.array_utils.byte_bounds(array)
        if array.size:
            self.stretches.append((low, high))
        return array.ctypes.data

    def at(self, address: int, size: int, what: str) -> Any:
        if PARAMS <= address < PARAMS + len(self.params):
            place = address - PARAMS
            return np.frombuffer(self.params, np.uint8)[place : place + size]
        if address % size:
            raise MachineError(f"{what} of {size} bytes at {address:#x}, which is not a multiple")
        if not any(low <= address and address + size <= high for low, high in self.stretches):
            raise MachineError(f"{what} of {size} bytes at {address:#x}, which belongs to no argument")
        return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


NOBODY, MANY = -1, -2
SYNCED, SEVERAL = 1 << 12, 1 << 13
"""Marks of shared memory, besides the number of the one thread that touched it: threads of one warp, by its number,
that have met since then, or have not."""


class Shared:
    """Shared memory, who has touched each byte since the last barrier, and how often banks were asked at once."""

    def __init__(self, size: int) -> None:
        self.bytes = np.full(size, 0xEE, np.uint8)
        self.writer = np.full(size, NOBODY)
        self.reader = np.full(size, NOBODY)
        self.waves: list[tuple[int, int]] = []
        """For every access of a warp: how many turns it took, and how few would do."""

    def barrier(self) -> None:
        self.writer[:] = NOBODY
        self.reader[:] = NOBODY

    def warp_barrier(self, warps: set[int]) -> None:
        """Threads of a warp have met: each sees what the others did."""
        for marks in (self.writer, self.reader):
            single = (marks >= 0) & (marks < SYNCED)
            several = marks >= SEVERAL
            numbers = np.where(single, marks // WARP, marks - SEVERAL)
            met = (single | several) & np.isin(numbers, list(warps))
            marks[met] = SYNCED + numbers[met]

    def check(self, place: int, size: int, what: str) -> slice:
        if place < 0 or place + size > len(self.bytes) or place % size:
            raise MachineError(f"{what} of {size} bytes at {place} of {len(self.bytes)} in shared memory")
        return slice(place, place + size)

    @staticmethod
    def _refuse(marks: Array, thread: int, did: str, does: str) -> None:
        foreign = (marks != NOBODY) & (marks != thread) & (marks != SYNCED + thread // WARP)
        if foreign.any():
            raise MachineError(f"thread {thread} {does} what others {did} since the last barrier: {marks[foreign][0]}")

    def load(self, thread: int, place: int, size: int) -> Array:
        part = self.check(place, size, "a load")
        self._refuse(self.writer[part], thread, "wrote", "reads")
        marks, warp = self.reader[part], thread // WARP
        alone = (marks == NOBODY) | (marks == thread) | (marks == SYNCED + warp)
        beside = ((marks >= 0) & (marks < SYNCED) & (marks // WARP == warp)) | (marks == SEVERAL + warp)
        self.reader[part] = np.where(alone, thread, np.where(beside, SEVERAL + warp, MANY))
        return self.bytes[part].copy()

    def store(self, thread: int, place: int, value: Array) -> None:
        part = self.check(place, value.size, "a store")
        self._refuse(self.writer[part], thread, "wrote", "writes")
        self._refuse(self.reader[part], thread, "read", "writes")
        self.writer[part] = thread
        self.bytes[part] = value

    def count(self, places: Array, size: int) -> None:
        """Turns that the banks take for one access of a warp, of which 16 bytes are done by 8 lanes at a time."""
        at_once = min(WARP, 128 // size)
        turns = 0
        for first in range(0, len(places), at_once):
            words = {int(place) // 4 + step for place in places[first : first + at_once] for step in range(max(1, size // 4))}
            turns += max(np.bincount([word % 32 for word in words], minlength=32))
        least = -(-len({int(place) // 4 + step for place in places for step in range(max(1, size // 4))}) // 32)
        self.waves.append((turns, max(1, least)))


# A block of threads


@dataclass
class Block:
    """The state of one block: values of every thread, by name, and where each thread is."""

    program: Program
    threads: int
    number: int
    memory: Memory
    shared: Shared
    values: dict[str, Array] = field(default_factory=dict)
    mask: Any = None

    def run(self) -> None:
        count, codes = self.threads, self.program.codes
        places, came = np.zeros(count, int), np.full(count, "", object)
        waiting = np.zeros(count, np.bool_)
        while (places < len(codes)).any():
            ready = np.where(waiting | (places >= len(codes)), len(codes), places)
            place = int(ready.min())
            if place == len(codes):
                if (places >= len(codes)).any():
                    raise MachineError("some threads wait at a barrier that others never come to")
                waiting[:] = False
                self.shared.barrier()
                continue
            code, self.mask = codes[place], (places == place) & ~waiting
            self._enter(code, came)
            for step in code.steps:
                step(self)
            self._leave(place, code, places, came, waiting)

    def _enter(self, code: Code, came: Any) -> None:
        fresh: list[tuple[str, Array]] = []
        for name, type_, sides in code.phis:
            found = self.blank(type_)
            for label, value in sides.items():
                from_there = self.mask & (came == label)
                if from_there.any():
                    found[from_there] = self.value(value, type_)[from_there]
            fresh.append((name, found))
        for name, found in fresh:
            self.set(name, found)

    def _leave(self, place: int, code: Code, places: Any, came: Any, waiting: Any) -> None:
        mask = self.mask
        if code.barrier:
            places[mask] += 1
            waiting[mask] = True
            return
        came[mask] = code.label
        if code.jump is None:
            places[mask] = len(self.program.codes)
            return
        condition, yes, no = code.jump
        if condition is None:
            places[mask] = self.program.places[yes]
            return
        holds = self.value(condition, "i1")
        places[mask & holds] = self.program.places[yes]
        places[mask & ~holds] = self.program.places[no]

    # Values

    def blank(self, type_: str) -> Array:
        lanes, dtype = storage(type_)
        return np.zeros((self.threads, lanes) if lanes else self.threads, dtype)

    def value(self, name: str, type_: str) -> Array:
        """A value of all threads; constants are the same in all."""
        if name in self.values:
            return self.values[name]
        if name == "@shared":
            return np.zeros(self.threads, np.uint64)
        lanes, dtype = storage(type_)
        constant = typed_constant(name, type_)
        return np.broadcast_to(np.asarray(constant, dtype), (self.threads, lanes) if lanes else (self.threads,)).copy()

    def set(self, name: str, value: Array) -> None:
        if name not in self.values or self.values[name].shape != value.shape:
            self.values[name] = value.copy()
        else:
            kept = self.values[name]
            kept[self.mask] = value[self.mask]

    def whole_warps(self, what: str) -> None:
        """Refuses what all lanes of a warp must do together."""
        by_warp = self.mask.reshape(-1, WARP)
        if (by_warp.any(1) != by_warp.all(1)).any():
            raise MachineError(f"{what} by some lanes of a warp")

    def warp_barrier(self) -> None:
        self.shared.warp_barrier({int(warp) for warp in np.flatnonzero(self.mask.reshape(-1, WARP).any(1))})

    # Memory

    def load(self, space: str, addresses: Array, size: int, where: Array) -> Array:
        """`size` bytes for each thread for which a condition holds."""
        found = np.zeros((self.threads, size), np.uint8)
        for thread in np.flatnonzero(where):
            address = int(addresses[thread])
            if space == "shared":
                found[thread] = self.shared.load(int(thread), address, size)
            else:
                found[thread] = self.memory.at(address, size, "a load")
        self._count(space, addresses, size, where)
        return found

    def store(self, space: str, addresses: Array, value: Array, where: Array) -> None:
        for thread in np.flatnonzero(where):
            address = int(addresses[thread])
            if space == "shared":
                self.shared.store(int(thread), address, value[thread])
            else:
                self.memory.at(address, value.shape[1], "a store")[:] = value[thread]
        self._count(space, addresses, value.shape[1], where)

    def _count(self, space: str, addresses: Array, size: int, where: Array) -> None:
        if space != "shared":
            return
        for first in range(0, self.threads, WARP):
            lanes = where[first : first + WARP]
            if lanes.any():
                self.shared.count(addresses[first : first + WARP][lanes], size)


# Running a kernel


@dataclass
class Run:
    """What a run leaves behind."""

    emitted: Emitted
    status: int
    waves: list[tuple[int, int]]

    @property
    def message(self) -> str | None:
        return None if self.status == 0 else self.emitted.messages[self.status - 1]


def run(module: ModuleOp, name: str, arguments: Sequence[Any], emitted: Emitted | None = None) -> Run:
    """Runs an nv function as it would be emitted; arrays are written in place."""
    kernel = symbol_in(module, name, nv.FuncOp)
    emitted = emit(module, name) if emitted is None else emitted
    bound = bind(name, kernel.function_type, kernel.shapes, kernel.grid, arguments)
    memory, record = Memory(), np.zeros(16, np.uint64)
    layout = emitted.block
    memory.params = bytearray(layout.size)
    words = np.frombuffer(memory.params, np.uint64)
    words = words.copy()
    for argument, type_, first in zip(arguments, kernel.function_type.inputs, layout.first, strict=True):
        if isinstance(type_, ViewType):
            numbers = [memory.add(argument), *argument.shape, *(stride // argument.itemsize for stride in argument.strides)]
            words[first : first + len(numbers)] = np.array(numbers, np.int64).view(np.uint64)
        else:
            bits = np.asarray(argument).astype(dtype_of(type_).storage).reshape(1).tobytes().ljust(WORD, b"\0")
            words[first] = np.frombuffer(bits, np.uint64)[0]
    words[layout.grid : layout.grid + len(bound.grid)] = bound.grid
    words[layout.report] = memory.add(record)
    memory.params[:] = words.tobytes()
    program, waves = parse(emitted.text), list[tuple[int, int]]()
    for number in range(int(np.prod(bound.grid, dtype=np.int64))):
        shared = Shared(emitted.shared)
        block = Block(program, kernel.thread_count, number, memory, shared)
        block.values["%params"] = np.full(block.threads, PARAMS, np.uint64)
        with np.errstate(all="ignore"):
            block.run()
        waves += shared.waves
    return Run(emitted, int(record[0]), waves)
