"""How long a program of agents of sm_90a takes under a block, and which blocks fit: a model of one multiprocessor.

A turn of a loop keeps several parts of the machine busy at once: tensor cores, the schedulers that issue everything
else, the unit for functions such as 2^x, shared memory and the way from L2. Agents go through the busiest one after the
other. What one of them computes between its products shows besides: all begin a turn when its tiles are there, and
while the last is at it, nobody has anything left to multiply. Numbers were fitted to kernels on an H200; they are for
comparing blocks with each other, not for telling times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import gcd, prod
from typing import Literal, NamedTuple

Axis = Literal["m", "n", "k"]
AXES: tuple[Axis, ...] = ("m", "n", "k")
Extent = Axis | int
"""A size that follows an axis of the block, or does not."""

ROWS = 64
"""Of an agent: those of one product."""
STEP_BYTES = 32
"""Products go along the depth in steps of so many."""
MOST_AGENTS = 4
PANEL_BYTES = 128
"""Columns in shared memory come in panels of so many bytes."""
SHARED = 227 * 1024
SMALL = 1024
"""Bytes of barriers and the like."""
STAGED = 16 * 1024
"""Bytes through which an agent stores."""
DEPTHS = ((2, 4), (2, 3), (2, 2), (1, 4), (1, 3), (1, 2))
"""Slots of what is filled once for a program, and of what is filled in every turn; those in front are better. Two for
the former let the next program begin early. More than four for the latter helped no kernel."""
REGISTERS = {1: 240, 2: 232, 3: 160, 4: 112}
"""Of a computing thread, by the number of agents."""
TURNING_REGISTERS = {1: 232, 2: 216, 3: 136, 4: 96}
"""The same, if there is also an agent that turns tiles."""
OWN_REGISTERS = 32
"""What a thread needs besides tiles."""
ALL_REGISTERS, THREADS, PRODUCT_REGISTERS = 65536, 128, 26
"""Of a multiprocessor; threads of an agent; and what an instruction takes besides its sums."""
WIDEST = 256
"""Columns of one product."""

FLOPS = 4096
"""Of products of 16 bits in a clock; narrower ones are as much faster as they are narrower."""
SHARED_BYTES, L2_BYTES = 128, 46
"""In a clock, of one multiprocessor."""
FUNCTION_CLOCKS = 8
"""Of a warp's functions on one scheduler."""
PRODUCT_ISSUES, REDUCTION_ISSUES = 10, 10
"""Instructions of a thread for each, whatever their size: descriptors, shuffles."""
PRODUCT_GAP = 56
"""Clocks in which tensor cores do nothing for a product that somebody waits for."""
MANY, ORDERED_SHOWING = 2, 0.5
"""More agents than so many begin products one after the other, and fewer where schedulers are busier than the unit for
functions; how much of what shows otherwise shows then."""
LATENCY = 600
"""From asking for a tile to having its first bytes."""
START, END = 1100, 1200
"""Clocks of a program besides its turns: until it has its first tiles, and until an agent has stored its results."""
USUAL_LENGTHS = (512, 1024, 2048)
"""Of loops: a block that does not divide them does some of the last turn for nothing."""

AT_ONCE = 132
"""Programs that run at the same time where nobody knows on which GPU."""
CLUSTER, TEAM_START, TEAM_LENGTH = 2, 5000, 2048
"""Blocks of a cluster that fetch together; clocks by which a launch takes longer with them; a usual length of loops."""
FETCH_SHOWING = 0.04
"""How much of the way from L2 shows beside products."""

COLUMNS = range(16, 257, 16)
LEAST = 64
"""Rows, and columns where a program does not ask for them."""
DEPTH_BYTES = (128, 256, 64)
"""Of products. Whole panels first: they are taken where others are no better."""


class BlockShape(NamedTuple):
    """Sizes of a block."""

    m: int
    n: int
    k: int

    def of(self, extent: Extent) -> int:
        return extent if isinstance(extent, int) else getattr(self, extent)

    @property
    def consumers(self) -> int:
        return self.m // ROWS


@dataclass(frozen=True)
class Product:
    """A product of the program's rows in a turn: `depth` numbers for each of its `columns`.

    `loaded` is whether its left factor comes out of shared memory: otherwise threads made it. Elements of its factors
    have so many bytes.
    """

    columns: Extent
    depth: Extent
    loaded: bool
    itemsize: int = 2


@dataclass(frozen=True)
class Work:
    """Work on tiles of the program's rows, in each turn: instructions, and functions, for each of their elements.

    Of elements that threads load themselves, so many bytes are `loaded`.
    """

    columns: Extent
    instructions: float
    functions: int = 0
    loaded: int = 0


@dataclass(frozen=True)
class ModelledRing:
    """Tiles that are loaded: in every turn, or once for each program. Those that are `turned` have a second ring."""

    rows: Extent
    columns: Extent
    repeated: bool
    itemsize: int = 2
    transposed: bool = False


@dataclass(frozen=True)
class ModelledIteration:
    """A loop around products. It goes along sizes in these steps; loops around it have steps, too."""

    steps: tuple[Extent, ...]
    products: tuple[Product, ...]
    work: tuple[Work, ...] = ()
    reductions: int = 0
    kept: tuple[Extent, ...] = ()
    """Columns of tiles of the program's rows that go around it, and are not themselves sums of its products."""
    banded: bool = False
    """Whether it begins and ends with the rows that it is for: each agent has turns of its own."""
    ordered: bool = False
    """Whether all agents have most of its turns in common: they may begin its products one after the other."""
    clipped: bool = False
    """Whether it ends with the rows that it is for, wherever it begins."""


@dataclass(frozen=True)
class Traced:
    """What counts of a program."""

    turns: tuple[ModelledIteration, ...]
    rings: tuple[ModelledRing, ...]
    stored: bool = True
    """Whether its results go out through shared memory."""

    @property
    def turning(self) -> bool:
        """Whether an agent turns tiles."""
        return any(ring.transposed for ring in self.rings)

    @property
    def axes(self) -> frozenset[Axis]:
        """Those that its sizes follow."""
        products = [one for turn in self.turns for one in turn.products]
        sizes = {one.columns for one in products} | {one.depth for one in products}
        sizes |= {one.rows for one in self.rings} | {one.columns for one in self.rings}
        return frozenset(axis for axis in AXES if axis in sizes)


def slot_bytes(rows: int, columns: int, itemsize: int) -> int:
    """Bytes of a tile in shared memory."""
    return rows * -(-columns * itemsize // PANEL_BYTES) * PANEL_BYTES


def _ring_bytes(ring: ModelledRing, block: BlockShape) -> int:
    """Of one slot, and of the one that it is turned into."""
    rows, columns = block.of(ring.rows), block.of(ring.columns)
    found = slot_bytes(rows, columns, ring.itemsize)
    return found + slot_bytes(columns, rows, ring.itemsize) if ring.transposed else found


def slots(traced: Traced, block: BlockShape) -> tuple[int, int] | None:
    """The best depths of rings for which there is room: of what is filled once, and in every turn."""
    stored = STAGED * block.consumers if traced.stored else 0
    for once, repeated in DEPTHS:
        rings = [_ring_bytes(ring, block) * (repeated if ring.repeated else once) for ring in traced.rings]
        if sum(rings) + stored + SMALL <= SHARED:
            return once, repeated
    return None


def registers(traced: Traced, block: BlockShape) -> int:
    """What a computing thread holds at most: sums of products, left factors that it made itself, and tiles it keeps."""
    found = [
        sum(
            block.of(one.columns) // 2 + (0 if one.loaded else block.of(one.depth) * one.itemsize // 8)
            for one in turn.products
        )
        + sum(block.of(columns) // 2 for columns in turn.kept)
        for turn in traced.turns
    ]
    return OWN_REGISTERS + max(found, default=0)


def widest_product(consumers: int, *, turning: bool = False) -> int:
    """The most columns of a product, if there is also an agent that turns tiles or not.

    Agents take more registers when they begin, but no instruction may need more than all threads have before that.
    """
    before = ALL_REGISTERS // (THREADS * (1 + turning + consumers)) // 8 * 8
    return min(WIDEST, 2 * (before - PRODUCT_REGISTERS) // 8 * 8)


def fits(traced: Traced, block: BlockShape) -> bool:
    """Whether a block has a form for agents that keeps all in registers and shared memory."""
    if block.consumers not in REGISTERS or block.m % ROWS:
        return False
    products = [one for turn in traced.turns for one in turn.products]
    if max(block.of(one.columns) for one in products) > widest_product(block.consumers, turning=traced.turning):
        return False
    if any(block.of(one.depth) * one.itemsize % STEP_BYTES for one in products):
        return False
    held = registers(traced, block) + max(_loaded(turn, block) for turn in traced.turns) * ROWS // THREADS // 4
    most = (TURNING_REGISTERS if traced.turning else REGISTERS)[block.consumers]
    return held <= most and slots(traced, block) is not None


def _loaded(turn: ModelledIteration, block: BlockShape) -> int:
    """Bytes for each row that threads load in a turn, in front of its products: they wait for nobody."""
    return sum(block.of(one.columns) * one.loaded for one in turn.work)


def turn_clocks(traced: Traced, turn: ModelledIteration, block: BlockShape) -> float:
    """Clocks of one turn of all agents."""
    tensor = sum(block.m * block.of(one.columns) * block.of(one.depth) * one.itemsize / FLOPS for one in turn.products)
    # A thread has half as many elements of a tile as the tile has columns.
    elements = [(one, block.of(one.columns) / 2) for one in turn.work]
    issues = sum(one.instructions * count for one, count in elements)
    functions = sum(one.functions * count for one, count in elements) * FUNCTION_CLOCKS
    ordered = turn.ordered and (block.consumers > MANY or issues > functions)
    issues += PRODUCT_ISSUES * len(turn.products) + REDUCTION_ISSUES * turn.reductions
    filled = [(block.of(ring.rows), block.of(ring.columns), ring.itemsize) for ring in traced.rings if ring.repeated]
    moved, written = sum(map(prod, filled)), sum(slot_bytes(*sizes) for sizes in filled)
    # Who turns tiles reads and writes them once more.
    written += sum(_ring_bytes(ring, block) for ring in traced.rings if ring.repeated and ring.transposed)
    read = sum(
        (block.consumers * block.of(one.columns) + (block.m if one.loaded else 0)) * block.of(one.depth) * one.itemsize
        for one in turn.products
    )
    found = slots(traced, block)
    assert found is not None
    moved += block.m * _loaded(turn, block)
    # A slot that is free has to be full again when its turn comes.
    arriving = (LATENCY + moved / L2_BYTES) / (found[1] - 1)
    if turn.work:
        tensor += block.consumers * PRODUCT_GAP * len(turn.products)
    computing = tensor, block.consumers * issues, block.consumers * functions
    busiest = max(*computing, (read + written) / SHARED_BYTES, moved / L2_BYTES)
    # Products with nothing in between follow each other without a gap.
    if not turn.work:
        return max(busiest, arriving)
    # Others hide as much of the rest of an agent's turn as the busiest part has to do besides.
    shown = 1.0 if block.consumers == 1 else sorted(computing)[1] / max(computing)
    if ordered:
        shown *= ORDERED_SHOWING
    rest = (sum(computing) - max(computing)) / block.consumers
    return max(busiest + shown * rest, arriving)


def program_clocks(traced: Traced, block: BlockShape) -> float:
    """Clocks of one program, if its loops are of the usual lengths, now this, now that."""
    total = float(START + END * block.consumers)
    for turn in traced.turns:
        steps = [block.of(step) for step in turn.steps if not isinstance(step, int)]
        counts = [_count(turn, steps, length) for length in USUAL_LENGTHS]
        total += sum(counts) / len(counts) * turn_clocks(traced, turn, block)
    found = slots(traced, block)
    assert found is not None
    # Without a second slot the first tiles are asked for when the program begins.
    alone = any(not ring.repeated for ring in traced.rings) and found[0] == 1
    return total + (LATENCY if alone else 0)


def _count(turn: ModelledIteration, steps: Sequence[int], length: int) -> float:
    """How many turns a loop has. One that ends with rows ends anywhere, halfway in the mean."""
    beyond = _beyond(turn, steps)
    if turn.clipped and not turn.banded:
        return prod((length / 2 + beyond) / step for step in steps)
    return prod(-(-(length + beyond) // step) for step in steps)


def _beyond(turn: ModelledIteration, steps: Sequence[int]) -> int:
    """How much longer the way of an agent's rows is than that of one of them: by those rows, and by parts of steps.

    That is at both ends of bands; where only the end moves with rows, it is half of it.
    """
    ends = 2 if turn.banded else int(turn.clipped)
    return (ROWS + steps[0] - gcd(ROWS, steps[0])) * ends // 2 if steps else 0


def blocks(traced: Traced) -> Iterator[BlockShape]:
    """The blocks that fit."""
    axes = traced.axes
    narrowest = min(one.itemsize for turn in traced.turns for one in turn.products)
    depths = [nbytes // narrowest for nbytes in DEPTH_BYTES]
    for consumers in REGISTERS:
        for n in COLUMNS if "n" in axes else (LEAST,):
            for k in depths if "k" in axes else (LEAST,):
                if fits(traced, block := BlockShape(consumers * ROWS, n, k)):
                    yield block


def waves(programs: int, multiprocessors: int) -> int:
    """How many programs the busiest multiprocessor has."""
    return -(-programs // multiprocessors)


def team_for(shared: int, step: int, programs: int) -> int:
    """How many workers are to fetch together what they `share`, bytes of it in a turn, which goes `step` along a loop.

    Each fetches a part of it, and waits for the others when it begins and when it ends.
    """
    saved = shared * (CLUSTER - 1) / CLUSTER / L2_BYTES * FETCH_SHOWING
    return CLUSTER if waves(programs, AT_ONCE) * (TEAM_LENGTH // step) * saved > TEAM_START else 1


def ranked(traced: Traced, programs: Callable[[BlockShape], int], multiprocessors: int) -> list[BlockShape]:
    """The blocks that fit, the fastest first, where it takes so many programs of each."""

    def clocks(block: BlockShape) -> float:
        return waves(programs(block), multiprocessors) * program_clocks(traced, block)

    return sorted(blocks(traced), key=clocks)


def best_by_agents(traced: Traced, fixed: tuple[int, ...] = ()) -> dict[int, BlockShape]:
    """For each number of agents the block with which rows take the fewest clocks, the best of all first.

    There are to be programs in plenty, and a program for each block of rows. Blocks begin with the sizes `fixed`.
    """
    found: dict[int, BlockShape] = {}
    open_ = [block for block in blocks(traced) if block[: len(fixed)] == fixed]
    for block in sorted(open_, key=lambda block: program_clocks(traced, block) / block.m):
        found.setdefault(block.consumers, block)
    return found
