"""Walks through a kernel's code as its threads do, and counts executions of its blocks and memory accesses.

Only the values behind addresses and branches are computed; there are no data. So a walk takes milliseconds and needs no
GPU, and counts as the machine executes: addresses of all lanes, with their predicates, in every iteration of every
loop. Where a branch depends on data, the code behind it is walked through; where a loop does, once. Both are counted.

Integer words that threads exchange through shared memory, the next program instance, say, are taken in the order in
which they were written there, so no barrier is needed. A counter in global memory only grows.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessera.errors import CompileError
from tessera.metatracing.events.arithmetic import RULES, bits_of, converted, numbers, type_of, width_of
from tessera.metatracing.events.counting import matrix_wavefronts, sectors_touched, wavefronts
from tessera.metatracing.events.kinds import WARP
from tessera.targets.cuda.ptx.reading import Code, Instruction, names_in

Array = NDArray[Any]
SHARED_AT = 1024
_MOST_STEPS = 400_000
_VECTOR = {"v2": 2, "v4": 4, "v8": 8}
_POSITIONS = {"shl": (1,), "shr": (1,), "bfe": (1, 2), "bfi": (2, 3)}
"""Operands that are numbers of 32 bits, whatever the type of the instruction."""
_INTEGERS = frozenset(RULES) | {"ld", "atom", "shfl", "elect", "cvt"}


@dataclass
class InstructionSite:
    """An instruction that accesses memory, and the counts of its executions."""

    at: int
    space: str
    stores: bool
    size: int
    text: str
    requests: int = 0
    lanes: int = 0
    sectors: int = 0
    wavefronts: int = 0
    least: int = 0
    unknown: int = 0
    """Requests whose addresses depend on data."""
    first: int | None = None
    touched: list[Array] = field(default_factory=list[Array])
    map_offset: int | None = None
    """The offset of the tensor map in the params block, for copies by one."""

    @property
    def distinct(self) -> int:
        """Different sectors, among the blocks that were walked."""
        if len(self.touched) > 1:
            self.touched = [np.unique(np.concatenate(self.touched))]
        return len(self.touched[0]) if self.touched else 0


@dataclass
class Walked:
    """The counts of a walk. `executed` are the warps that executed each block of the code."""

    code: Code
    executed: Counter[int]
    sites: list[InstructionSite]
    branches: int
    divergent: int
    by_data: int
    """Branches that data decide."""
    is_complete: bool
    """Whether all addresses and branches were known."""


class Walk:
    """Some blocks of a launch, all their threads at once."""

    def __init__(
        self,
        code: Code,
        *,
        threads: int,
        blocks: Sequence[int],
        launched: int,
        params: bytes,
        counter_step: int = 1,
        cluster: int = 1,
    ) -> None:
        if threads % WARP:
            raise CompileError(f"a block has whole warps of {WARP} threads, got {threads}")
        self._code, self._params, self._step = code, params, counter_step
        count = threads * len(blocks)
        self._count, self._threads = count, threads
        thread = np.tile(np.arange(threads, dtype=np.uint64), len(blocks))
        own = np.repeat(np.asarray(blocks, np.uint64), threads)

        def everywhere(value: int) -> Array:
            return np.full(count, value, np.uint64)

        self._special = {
            "%tid.x": thread,
            "%tid.y": everywhere(0),
            "%tid.z": everywhere(0),
            "%ctaid.x": own,
            "%ctaid.y": everywhere(0),
            "%ctaid.z": everywhere(0),
            "%ntid.x": everywhere(threads),
            "%nctaid.x": everywhere(launched),
            "%laneid": thread % np.uint64(WARP),
            "%warpid": thread // np.uint64(WARP),
            "%cluster_ctarank": own % np.uint64(cluster),
            "%cluster_ctaid.x": own % np.uint64(cluster),
            "%cluster_nctarank": everywhere(cluster),
            "%clusterid.x": own // np.uint64(cluster),
            "%nclusterid.x": everywhere(max(1, launched // cluster)),
        }
        self._home = np.repeat(np.arange(len(blocks)), threads)
        self._registers: dict[str, Array | None] = {}
        self._constants: dict[tuple[str, str], Array] = {}
        self._counters: dict[int, int] = defaultdict(int)
        self._streams: dict[tuple[int, int], list[int]] = defaultdict(list)
        self._taken: dict[tuple[int, int], int] = defaultdict(int)
        self._sites: dict[int, InstructionSite] = {}
        self._branches = self._divergent = self._by_data = 0
        self._unknown = False
        self._plan()

    # Instructions that have to be computed

    def _plan(self) -> None:
        """Finds the instructions behind addresses and branches, and cuts the code into blocks."""
        code = self._code
        wanted: list[str] = []
        for one in code.instructions:
            counts = _counts(one)
            if one.guard is not None and (counts or one.kind in ("bra", "ret", "exit")):
                wanted.append(one.guard[0])
            if counts:
                # Copies of no bytes are not made.
                sizes = one.operands[3:] if one.kind == "cp" else ()
                wanted += [name for operand in (*_addresses(one), *sizes) for name in names_in(operand)]
        needed = set(code.needed(wanted))
        waits = {at for at in needed if _is_word(code.instructions[at], "ld")}
        if waits:
            for at, one in enumerate(code.instructions):
                if _is_word(one, "st"):
                    behind = code.needed(one.sources)
                    if all(code.instructions[other].kind in _INTEGERS for other in behind):
                        needed |= behind
                        needed.add(at)
        self._words = waits if any(_is_word(code.instructions[at], "st") for at in needed) else set[int]()
        cuts = sorted({at for block in code.blocks for at in (block.start, block.stop)} | self._words)
        self._blocks = [range(low, high) for low, high in itertools.pairwise(cuts)]
        self._block_at = {block.start: index for index, block in enumerate(self._blocks)}
        self._block_at[len(code.instructions)] = len(self._blocks)
        ends = ("bra", "ret", "exit")
        self._steps = [
            [at for at in block if at in needed or code.instructions[at].kind in ends or _counts(code.instructions[at])]
            for block in self._blocks
        ]

    # Walking

    def run(self) -> Walked:
        """Threads that are furthest behind go first, so that branches meet again."""
        at = np.zeros(self._count, np.int64)
        stuck = np.zeros(self._count, bool)
        end = len(self._blocks)
        executed: Counter[int] = Counter()
        for _ in range(_MOST_STEPS):
            free = (at < end) & ~stuck
            if not free.any():
                if not stuck.any():
                    break
                # No thread is left to write the words that these wait for: they are unknown.
                self._unknown, stuck[:] = True, False
                self._words.clear()
                continue
            index = int(at[free].min())
            here = free & (at == index)
            block = self._blocks[index]
            if block.start in self._words:
                ready = self._ready(self._code.instructions[block.start], here)
                if not ready.any():
                    stuck |= here
                    continue
                stuck |= here & ~ready
                here = ready
            executed[index] += int(here.reshape(-1, WARP).any(axis=1).sum())
            written = len(self._streams)
            total = sum(map(len, self._streams.values()))
            at[here] = self._through(index, here)[here]
            if len(self._streams) != written or sum(map(len, self._streams.values())) != total:
                stuck[:] = False
        else:
            self._unknown = True
        whole: Counter[int] = Counter()
        for index, warps in executed.items():
            for instruction in self._blocks[index]:
                whole[instruction] += warps
        known = not self._unknown and not any(site.unknown for site in self._sites.values())
        sites = [self._sites[at] for at in sorted(self._sites)]
        return Walked(self._code, whole, sites, self._branches, self._divergent, self._by_data, known)

    def _through(self, index: int, here: Array) -> Array:
        """Executes one block of the code for some threads; returns the next block of each."""
        goes = np.full(self._count, index + 1)
        instructions = self._code.instructions
        for at in self._steps[index]:
            one = instructions[at]
            mask, known = here, True
            if one.guard is not None:
                name, negated = one.guard
                held = self._registers.get(name)
                known = held is not None
                if held is not None:
                    mask = here & ((held != 0) ^ negated)
            if one.kind == "bra":
                self._branch(one, here, mask, known, goes)
            elif one.kind in ("ret", "exit"):
                if known:
                    goes[mask] = len(self._blocks)
            else:
                if is_bulk(one):
                    self._bulk(at, one, mask if known else here)
                    continue
                if _is_access(one):
                    self._access(at, one, mask if known else here)
                self._compute(at, one, mask if known else here)
        return goes

    def _branch(self, one: Instruction, here: Array, mask: Array, known: bool, goes: Array) -> None:
        if one.guard is None:
            goes[here] = self._target(one)
            return
        warps = here.reshape(-1, WARP)
        self._branches += int(warps.any(axis=1).sum())
        if not known:
            # An inner wait for a barrier is no branch of the kernel.
            self._by_data += int(warps.any(axis=1).sum()) if one.operands[0].startswith("$") else 0
            return
        taken = mask.reshape(-1, WARP)
        self._divergent += int((taken.any(axis=1) & (warps & ~taken).any(axis=1)).sum())
        goes[mask] = self._target(one)

    def _target(self, one: Instruction) -> int:
        return self._block_at[self._code.labels[one.operands[0]]]

    # Registers

    def _get(self, operand: str, type_: str) -> Array | None:
        """An operand as numbers of a type; None where it depends on data."""
        if operand[0] == "%" or "@" in operand:
            bits = self._special[operand] if operand in self._special else self._registers.get(operand)
            return None if bits is None else numbers(bits, type_)
        key = (operand, type_)
        if key not in self._constants:
            value = SHARED_AT if operand == "shared" else 0 if "_param_" in operand else _literal(operand)
            if value is None:
                return None
            bits = np.full(self._count, value & ((1 << 64) - 1), np.uint64)
            self._constants[key] = numbers(bits, type_)
        return self._constants[key]

    def _put(self, name: str, values: Array | None, mask: Array) -> None:
        if values is None:
            self._registers[name] = None
            return
        bits = bits_of(values, self._code.width(name))
        if not mask.all():
            old = self._registers.get(name)
            bits = np.where(mask, bits, np.uint64(0) if old is None else old)
        self._registers[name] = bits

    def _compute(self, at: int, one: Instruction, mask: Array) -> None:
        kind, parts = one.kind, one.parts
        if kind == "ld" and "param" in parts:
            self._load_param(one, mask)
        elif at in self._words:
            self._take(one, mask)
        elif kind == "st" and self._words and _is_word(one, "st"):
            self._hand_on(one, mask)
        elif kind == "atom":
            self._count_up(one, mask)
        elif kind == "mov" and one.operands[-1].startswith("{"):
            self._join(one, mask)
        elif kind == "mov" and one.operands[0].startswith("{"):
            self._split(one, mask)
        elif kind == "elect":
            chosen = (np.arange(self._count) % WARP == 0).astype(np.uint64)
            self._put(one.results[-1], chosen, mask)
        elif kind == "shfl" and "idx" in parts:
            self._shuffle(one, mask)
        else:
            values = self._value(one)
            for name in one.results:
                self._put(name, values, mask)

    def _value(self, one: Instruction) -> Array | None:
        """The result of arithmetic on known numbers."""
        kind, parts, sources = one.kind, one.parts, one.operands[1:]
        if kind == "cvt":
            bits = self._get(sources[0], "b64")
            return None if bits is None else converted(parts, bits)
        apply, type_ = RULES.get(kind), type_of(parts)
        if apply is None or "f" in type_:
            return None
        positions, given = _POSITIONS.get(kind, ()), list[Array]()
        for index, operand in enumerate(sources):
            wanted = "u32" if index in positions else type_
            if kind == "selp" and index == 2:
                wanted = "pred"
            elif kind == "mad" and index == 2 and "wide" in parts:
                wanted = f"{type_[0]}{2 * width_of(type_)}"
            values = self._get(operand, wanted)
            if values is None:
                return None
            given.append(values)
        if kind == "setp" and len(given) > 2:
            return None
        return apply(parts, given)

    def _load_param(self, one: Instruction, mask: Array) -> None:
        _, offset = self._address(one.operands[1])
        type_ = type_of(one.parts)
        size = width_of(type_) // 8
        start = None if offset is None else int(offset[0])
        for index, name in enumerate(one.results):
            raw = b"" if start is None else self._params[start + index * size : start + (index + 1) * size]
            known = len(raw) == size
            value = int.from_bytes(raw, "little") if known else 0
            self._put(name, numbers(np.full(self._count, value, np.uint64), type_) if known else None, mask)

    def _join(self, one: Instruction, mask: Array) -> None:
        names = names_in(one.operands[1]) or [part.strip() for part in one.operands[1].strip("{}").split(",")]
        wide = width_of(type_of(one.parts)) // len(names)
        parts = [self._get(name, f"u{wide}") for name in names]
        found: Array | None = np.zeros(self._count, np.uint64)
        for index, part in enumerate(parts):
            found = None if part is None or found is None else found | part << np.uint64(wide * index)
        self._put(one.operands[0], found, mask)

    def _split(self, one: Instruction, mask: Array) -> None:
        names = [part.strip() for part in one.operands[0].strip("{}").split(",")]
        wide = width_of(type_of(one.parts)) // len(names)
        bits = self._get(one.operands[1], "b64")
        for index, name in enumerate(names):
            if name != "_":
                low = None if bits is None else numbers(bits >> np.uint64(wide * index), f"u{wide}")
                self._put(name, low, mask)

    def _shuffle(self, one: Instruction, mask: Array) -> None:
        """One lane's number for its whole warp."""
        value, lane = self._get(one.operands[1], "b32"), self._get(one.operands[2], "u32")
        found = None
        if value is not None and lane is not None:
            rows = np.arange(self._count) // WARP * WARP
            found = value[rows + (lane % np.uint64(WARP)).astype(np.int64)]
        self._put(one.results[0], found, mask)

    # Words between threads

    def _ready(self, one: Instruction, here: Array) -> Array:
        """The threads whose word has been written."""
        _, addresses = self._address(one.operands[1])
        if addresses is None:
            return here
        found = here.copy()
        for lane in np.flatnonzero(here):
            key = int(self._home[lane]), int(addresses[lane])
            found[lane] = self._taken[int(lane), key[1]] < len(self._streams[key])
        # A warp goes on as a whole.
        whole = ~((here & ~found).reshape(-1, WARP).any(axis=1))
        return found & np.repeat(whole, WARP)

    def _take(self, one: Instruction, mask: Array) -> None:
        _, addresses = self._address(one.operands[1])
        if addresses is None:
            self._put(one.results[0], None, mask)
            return
        found = np.zeros(self._count, np.uint64)
        for lane in np.flatnonzero(mask):
            address = int(addresses[lane])
            found[lane] = self._streams[int(self._home[lane]), address][self._taken[int(lane), address]]
            self._taken[int(lane), address] += 1
        self._put(one.results[0], found, mask)

    def _hand_on(self, one: Instruction, mask: Array) -> None:
        _, addresses = self._address(one.operands[0])
        values = self._get(one.operands[1], "b32")
        if addresses is None or values is None:
            return
        for lane in np.flatnonzero(mask):
            self._streams[int(self._home[lane]), int(addresses[lane])].append(int(values[lane]))

    def _count_up(self, one: Instruction, mask: Array) -> None:
        """Adds to a counter that all threads share; it steps over program instances that are not walked."""
        _, addresses = self._address(one.operands[1])
        added = self._get(one.operands[2], "u32")
        if addresses is None or added is None or one.parts[-1][0] == "f":
            self._put(one.results[0], None, mask)
            return
        found = np.zeros(self._count, np.uint64)
        for lane in np.flatnonzero(mask):
            address = int(addresses[lane])
            found[lane] = self._counters[address]
            self._counters[address] += int(added[lane]) * self._step
        self._put(one.results[0], found, mask)

    # Memory

    def _address(self, operand: str) -> tuple[str, Array | None]:
        """`[name+4]`: the name, and the addresses."""
        name, _, further = operand.strip("[] ").partition("+")
        base = self._get(name.strip(), "b64")
        offset = np.uint64(int(further, 0) & ((1 << 64) - 1)) if further else np.uint64(0)
        return name.strip(), None if base is None else base + offset

    def _access(self, at: int, one: Instruction, mask: Array) -> None:
        sites = [self._site(at, part, one) for part in _parts(one)]
        warps = mask.reshape(-1, WARP)
        requests = int(warps.any(axis=1).sum())
        if not requests:
            return
        for site, operand in zip(sites, _addresses(one), strict=True):
            _, found = self._address(operand)
            active = warps
            if one.kind == "cp" and site.space == "global" and len(one.operands) > 3:
                sizes = self._get(one.operands[3], "u32")
                active = warps if sizes is None else warps & (sizes.reshape(-1, WARP) != 0)
            site.requests += int(active.any(axis=1).sum())
            if found is None:
                site.unknown += requests
                continue
            rows = found.astype(np.int64).reshape(-1, WARP)
            some = active.any(axis=1)
            rows, active = rows[some], active[some]
            if not len(rows):
                continue
            site.lanes += int(active.sum())
            if site.first is None:
                site.first = int(rows[0][active[0]][0])
            self._measure(site, one, rows, active)

    def _bulk(self, at: int, one: Instruction, mask: Array) -> None:
        """A copy of a box that a thread asks for: its bytes are those of the tensor map's box."""
        stores = one.operands[0].find("{") >= 0
        site = self._sites.setdefault(2 * at, InstructionSite(at, "bulk", stores, 0, one.text))
        site.requests += int(mask.sum())
        box = one.operands[0 if stores else 1]
        _, found = self._address(box.strip("[] ").split(",")[0])
        site.map_offset = None if found is None or not mask.any() else int(found[mask][0])

    def _measure(self, site: InstructionSite, one: Instruction, rows: Array, active: Array) -> None:
        if site.space == "global":
            touched = sectors_touched(rows, active, site.size)
            fresh = touched >= 0
            fresh[:, 1:] &= touched[:, 1:] != touched[:, :-1]
            site.sectors += int(fresh.sum())
            site.touched.append(np.unique(touched[fresh]))
            if len(site.touched) > 32:
                site.touched = [np.unique(np.concatenate(site.touched))]
            return
        if one.kind in ("ldmatrix", "stmatrix"):
            count = int(next(part for part in one.parts if part in ("x1", "x2", "x4"))[1:])
            taken, least = matrix_wavefronts(rows, active, count)
        else:
            taken, least = wavefronts(rows, active, site.size)
        site.wavefronts += int(taken.sum())
        site.least += int(least.sum())

    def _site(self, at: int, part: tuple[str, bool], one: Instruction) -> InstructionSite:
        space, stores = part
        # Copies have two: one half for each memory.
        key = 2 * at + (1 if one.kind == "cp" and stores else 0)
        if key not in self._sites:
            self._sites[key] = InstructionSite(at, space, stores, _size(one), one.text)
        return self._sites[key]


def is_bulk(one: Instruction) -> bool:
    """Whether it is a copy of a box by a tensor map."""
    return one.parts[:4] == ("cp", "async", "bulk", "tensor")


def _counts(one: Instruction) -> bool:
    return _is_access(one) or is_bulk(one)


def _is_access(one: Instruction) -> bool:
    """Whether it is an access of the threads to memory; copies by tensor maps are another unit's."""
    if one.kind in ("ld", "st", "atom", "red"):
        return "global" in one.parts or "shared" in one.parts
    if one.kind == "cp":
        return one.parts[1] == "async" and len(one.parts) > 2 and one.parts[2] in ("ca", "cg")
    return one.kind in ("ldmatrix", "stmatrix")


def _parts(one: Instruction) -> tuple[tuple[str, bool], ...]:
    """The memories that it accesses, and whether it writes there, in the order of `_addresses`."""
    if one.kind == "cp":
        return ("shared", True), ("global", False)
    space = "shared" if "shared" in one.parts or one.kind in ("ldmatrix", "stmatrix") else "global"
    return ((space, one.kind in ("st", "stmatrix", "atom", "red")),)


def _addresses(one: Instruction) -> tuple[str, ...]:
    return tuple(operand for operand in one.operands if operand.startswith("["))


def _size(one: Instruction) -> int:
    """The bytes of one lane."""
    if one.kind == "cp":
        return int(one.operands[2])
    if one.kind in ("ldmatrix", "stmatrix"):
        return 16
    ways = next((_VECTOR[part] for part in one.parts if part in _VECTOR), 1)
    return ways * max(1, width_of(type_of(one.parts)) // 8)


def _is_word(one: Instruction, kind: str) -> bool:
    """Whether it moves one word of 32 bits between a thread and shared memory."""
    return one.kind == kind and one.parts == (kind, "shared", "b32")


def _literal(operand: str) -> int | None:
    try:
        return int(operand.rstrip("U"), 0)
    except ValueError:
        return None
