"""A machine for tests: runs the PTX of one kernel on NumPy, all threads of a block at once.

It is as strict as a GPU is lenient. Copies that run beside the threads land when they are waited for, and not before;
who reads what another thread wrote, or overwrites what another one reads, without a barrier between the two is told so,
and so is every access outside the memory that was given. It counts bank conflicts on the way.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from ptx_rules import RULES, WARP, Array, PtxError

from tessera.targets.cuda.ptx.reading import Code, read

SHARED_AT = 1024
"""Where shared memory begins: not at 0, so that an address that was forgotten shows."""
GLOBAL_AT = 1 << 20
BANKS = 32
NOBODY, MANY = -1, -2
TOGETHER = frozenset({"shfl", "vote", "mma", "ldmatrix", "stmatrix"})
"""What the lanes of a warp do together: those that come first wait for the others."""
_CLASSES = {"pred": "?", "b8": "u1", "b16": "u2", "b32": "u4", "b64": "u8", "f32": "u4", "f64": "u8"}
"""How the bits of registers are kept."""


@dataclass
class Memory:
    """Bytes of all threads, and which of them exist."""

    data: Array
    there: Array
    first: int

    def places(self, addresses: Array, size: int, what: str) -> Array:
        found = addresses.astype(np.int64)[:, None] - self.first + np.arange(size)
        if found.size and (found.min() < 0 or found.max() >= len(self.data) or not self.there[found].all()):
            raise PtxError(f"{what} outside the memory that was given: {addresses[:4]} …")
        if (addresses % size).any():
            raise PtxError(f"{what} of {size} bytes at odd addresses: {addresses[:4]} …")
        return found


@dataclass
class Conflicts:
    """How many turns accesses took in all, and how many there would be without conflicts."""

    taken: int = 0
    least: int = 0


class Machine:
    """One block."""

    def __init__(self, program: Code, threads: int, block: int, shared: int, memory: Memory, params: bytes) -> None:
        self.program, self.threads, self.memory = program, threads, memory
        self.params = np.frombuffer(params, np.uint8)
        self.shared = Memory(np.full(shared, 0xFF, np.uint8), np.ones(shared, bool), SHARED_AT)
        self.special = {
            "%tid.x": np.arange(threads, dtype=np.uint32),
            "%ctaid.x": np.full(threads, block, np.uint32),
            "%ntid.x": np.full(threads, threads, np.uint32),
            "%laneid": np.arange(threads, dtype=np.uint32) % WARP,
        }
        self.registers: dict[str, Array] = {}
        self.mask: Array = np.ones(threads, bool)
        self.whole = True
        self.counts: Counter[str] = Counter()
        self.conflicts: dict[str, Conflicts] = {}
        # Who touched each byte of shared memory last, and in which span between two barriers.
        self.epoch = 0
        self._wrote, self._written = np.full(shared, NOBODY), np.full(shared, -1)
        self._read, self._read_in = np.full(shared, NOBODY), np.full(shared, -1)
        self._flying = np.zeros(shared, bool)
        self._begun: list[tuple[Array, Array, Array]] = []
        self._groups: list[list[tuple[Array, Array, Array]]] = []

    def run(self, most: int = 2_000_000) -> None:
        """Threads that are furthest behind go first, so that branches meet again."""
        at = np.zeros(self.threads, np.int64)
        waiting = np.zeros(self.threads, bool)
        done = np.zeros(self.threads, bool)
        early = np.zeros(self.threads, bool)
        code = self.program.instructions
        for _ in range(most):
            free = ~(waiting | done | early)
            if not free.any():
                if done.all():
                    return
                if early.any():
                    raise PtxError(f"some threads of a warp never come to {code[int(at[early][0])].text}")
                # All that are left wait at one barrier.
                self.epoch += 1
                at[waiting] += 1
                waiting[:] = False
                continue
            place = int(at[free].min())
            here = free & (at == place)
            if place >= len(code):
                done |= here
                continue
            op = code[place]
            if op.parts[0] in TOGETHER:
                early |= here
                here = np.repeat((early & (at == place)).reshape(-1, WARP).all(1), WARP)
                early &= ~here
                if not here.any():
                    continue
            self.counts[".".join(op.parts)] += 1
            self.mask = here
            if op.guard is not None:
                name, negated = op.guard
                self.mask = here & (self._get(name, "pred") ^ negated)
            self.whole = bool(self.mask.all())
            kind = op.parts[0]
            if kind == "bra":
                at[here] = place + 1
                at[self.mask] = self.program.labels[op.operands[0]]
                continue
            if kind == "ret":
                done |= self.mask
                at[here] = place + 1
                continue
            if kind in ("bar", "barrier"):
                waiting |= self.mask
                continue
            at[here] = place + 1
            if not self.mask.any():
                continue
            rule = RULES.get(kind)
            if rule is None:
                raise PtxError(f"the machine has no {op.text}")
            try:
                rule(self, op)
            except PtxError as error:
                raise PtxError(f"{error}\n  in {op.text}") from None
        raise PtxError(f"not done after {most} instructions")

    # Registers

    def held(self, name: str) -> np.dtype[Any]:
        """How a register's bits are kept."""
        known = self.program.classes
        return np.dtype(_CLASSES[known[name] if name in known else known[name.rstrip("0123456789")]])

    def get(self, operand: str, type_: str) -> Array:
        """An operand as numbers of a type: s32, u64, f32, b16, pred, …"""
        if type_ == "pred":
            return self._get(operand, type_)
        wide = int(re.sub(r"\D", "", type_))
        bits = self._get(operand, type_)
        raw = bits.astype(f"u{wide // 8}") if bits.dtype.itemsize * 8 != wide else bits
        return raw.view({"s": "i", "u": "u", "b": "u", "f": "f"}[type_[0]] + str(wide // 8))

    def _get(self, operand: str, type_: str) -> Array:
        if operand.startswith("!"):
            return ~self._get(operand[1:], type_)
        if operand in self.special:
            return self.special[operand]
        if operand.startswith("%") or "@" in operand:
            found = self.registers.get(operand)
            if found is None:
                raise PtxError(f"{operand} is read before it is written")
            return found
        if "_param_" in operand:
            return np.zeros(self.threads, np.uint64)
        if operand == "shared":
            return np.full(self.threads, SHARED_AT, np.uint64)
        if operand.startswith(("0f", "0F")):
            return np.full(self.threads, int(operand[2:], 16), np.uint32)
        if operand.startswith(("0d", "0D")):
            return np.full(self.threads, int(operand[2:], 16), np.uint64)
        wide = int(re.sub(r"\D", "", type_) or 1)
        return np.full(self.threads, int(operand.rstrip("U"), 0) % (1 << wide), f"u{max(1, wide // 8)}")

    def put(self, name: str, values: Array) -> None:
        """Writes a register in the threads that are here; values have its width or are bool."""
        if name == "_":
            return
        held = self.held(name)
        raw = values if values.dtype == np.bool_ else values.view(f"u{values.dtype.itemsize}")
        if raw.dtype != held:
            if held.itemsize < raw.dtype.itemsize:
                raise PtxError(f"{name} has {held.itemsize} bytes, the value {raw.dtype.itemsize}")
            raw = raw.astype(held)
        if self.whole:
            self.registers[name] = raw.copy()
            return
        # A register that a thread never wrote holds anything.
        old = self.registers.get(name)
        old = np.zeros(self.threads, held) if old is None else old
        self.registers[name] = np.where(self.mask, raw, old)

    def address(self, operand: str) -> tuple[str, Array | int]:
        """`[name+4]`: the name, and the address or the offset."""
        inside = operand.strip("[] ")
        name, _, further = inside.partition("+")
        name = name.strip()
        offset = int(further, 0) if further else 0
        if name.startswith("%") or name == "shared" or "@" in name:
            return name, (self._get(name, "b64").astype(np.int64) + offset)[self.mask]
        return name, offset

    # Shared memory

    def note(self, kind: str, addresses: Array, size: int, group: int) -> None:
        """Counts the turns of an access: lanes of a group meet in a bank when they want other words of it."""
        lanes = np.flatnonzero(self.mask)
        found = self.conflicts.setdefault(kind, Conflicts())
        words = (addresses[:, None] // 4 + np.arange(max(1, size // 4))) if size >= 4 else addresses[:, None] // 4
        for first in range(0, self.threads, group):
            mine = words[(lanes >= first) & (lanes < first + group)]
            if not len(mine):
                continue
            wanted = np.unique(mine)
            found.taken += int(np.bincount(wanted % BANKS, minlength=BANKS).max())
            found.least += max(1, -(-len(wanted) // BANKS))

    def note_rows(self, kind: str, addresses: Array) -> None:
        """The same of matrices: eight rows are one turn."""
        found = self.conflicts.setdefault(kind, Conflicts())
        for eight in addresses.reshape(-1, 8):
            chunks = np.unique(eight // 16)
            found.taken += int(np.bincount(chunks % 8, minlength=8).max())
            found.least += 1

    def shared_places(self, addresses: Array, size: int, *, writes: bool, threads: Array) -> Array:
        """Where bytes lie, after looking for races."""
        places = self.shared.places(addresses, size, "shared memory is accessed")
        if self._flying[places].any():
            raise PtxError("shared memory is accessed while a copy into it is under way")
        mine = np.broadcast_to(threads[:, None], places.shape)
        others = (self._written[places] == self.epoch) & (self._wrote[places] != mine)
        if others.any():
            raise PtxError("shared memory that another thread wrote is accessed without a barrier between")
        if writes:
            read = (self._read_in[places] == self.epoch) & (self._read[places] != mine)
            if read.any():
                raise PtxError("shared memory that another thread reads is written without a barrier between")
            self._wrote[places], self._written[places] = mine, self.epoch
        else:
            flat, who = places.ravel(), mine.ravel()
            known = np.where(self._read_in[flat] == self.epoch, self._read[flat], NOBODY)
            self._read[flat] = np.where((known == NOBODY) | (known == who), who, MANY)
            order = np.argsort(flat, kind="stable")
            same = flat[order][1:] == flat[order][:-1]
            twice = same & (who[order][1:] != who[order][:-1])
            self._read[flat[order][1:][twice]] = MANY
            self._read_in[flat] = self.epoch
        return places

    def begin_copy(self, to: Array, values: Array) -> None:
        """Bytes that land when they are waited for."""
        threads = np.flatnonzero(self.mask)
        places = self.shared_places(to, values.shape[1], writes=True, threads=threads)
        self._flying[places] = True
        self._begun.append((places, values, threads))

    def commit(self) -> None:
        self._groups.append(self._begun)
        self._begun = []

    def wait(self, pending: int) -> None:
        while len(self._groups) > pending:
            for places, values, threads in self._groups.pop(0):
                self.shared.data[places] = values
                self._flying[places] = False
                self._wrote[places] = threads[:, None]
                self._written[places] = self.epoch


# Launching


def owner(array: Array) -> Array:
    """The array whose memory another one shows."""
    found: Any = array.base
    return found


class Launch:
    """Arrays at made-up addresses, and the words of a kernel's parameter."""

    def __init__(self) -> None:
        self.words: list[int] = []
        self._arrays: list[tuple[Array, int]] = []
        self._end = GLOBAL_AT

    def view(self, array: Array) -> None:
        """An argument: its address, sizes and strides in elements."""
        base = array
        while base.base is not None:
            base = owner(base)
        base = base if base.flags.c_contiguous else base.T
        low = array.ctypes.data - base.ctypes.data
        known = next((first for kept, first in self._arrays if np.shares_memory(kept, base)), None)
        if known is None:
            known = self._end
            self._arrays.append((base, known))
            self._end = -(-(known + base.nbytes + 64) // 256) * 256
        self.words += [known + low, *array.shape, *(stride // array.itemsize for stride in array.strides)]

    def number(self, value: float) -> None:
        """A scalar argument; a float as f32."""
        self.words.append(int(np.float32(value).view(np.uint32)) if isinstance(value, float) else value % (1 << 64))

    def run(self, ptx: str, threads: int, shared: int, size: int, blocks: Sequence[int]) -> list[Machine]:
        """Runs some blocks one after the other; what they store is in the arrays afterwards."""
        params = b"".join(int(word % (1 << 64)).to_bytes(8, "little") for word in self.words).ljust(size, b"\0")
        memory = Memory(
            np.full(self._end - GLOBAL_AT, 0xFF, np.uint8), np.zeros(self._end - GLOBAL_AT, bool), GLOBAL_AT
        )
        for array, first in self._arrays:
            part = slice(first - GLOBAL_AT, first - GLOBAL_AT + array.nbytes)
            memory.data[part], memory.there[part] = array.reshape(-1).view(np.uint8), True
            # Small elements are changed in words: what is allocated ends with a whole one.
            memory.there[part.start : -(-part.stop // 4) * 4] = True
        program = read(ptx)
        machines = [Machine(program, threads, block, shared, memory, params) for block in blocks]
        for machine in machines:
            machine.run()
        for array, first in self._arrays:
            part = memory.data[first - GLOBAL_AT : first - GLOBAL_AT + array.nbytes]
            array.reshape(-1).view(np.uint8)[...] = part
        return machines
