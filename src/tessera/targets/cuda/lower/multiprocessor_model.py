"""A model of one multiprocessor: which blocks fit a warp-specialized kernel of sm_90a, and how long it takes with them.

An iteration of a loop keeps several parts of the machine busy at once: tensor cores, the schedulers that issue
everything else, the unit for functions such as 2^x, shared memory and the way from L2. Consumers go through the busiest
one after the other. What a consumer computes between its dots shows besides: all begin an iteration when its tiles are
there, and while the last one computes, none has anything left to multiply. Numbers were fitted to kernels on an H200;
they are for comparing blocks with each other, not for predicting times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil, gcd, prod
from typing import Literal, NamedTuple

Axis = Literal["m", "n", "k"]
AXES: tuple[Axis, ...] = ("m", "n", "k")
Extent = Axis | int
"""A size that follows an axis of the block, or a fixed one."""

ROWS = 64
"""Of a consumer: those of one dot."""
STEP_BYTES = 32
"""Dots go along the depth in steps of so many."""
MOST_CONSUMERS = 4
PANEL_BYTES = 128
"""Columns in shared memory come in panels of so many bytes."""
SHARED = 227 * 1024
SMALL = 1024
"""Bytes of barriers and the like."""
STAGED = 16 * 1024
"""Bytes of shared memory through which a consumer stores."""
DEPTHS = ((2, 4), (2, 3), (2, 2), (1, 4), (1, 3), (1, 2))
"""Slots of rings that are filled once for a program instance, and of others; those in front are better. Two for the
former let the next instance begin early. More than four for the latter helped no kernel."""
REGISTERS = {1: 240, 2: 232, 3: 160, 4: 112}
"""Of a consumer's thread, by the number of consumers."""
TRANSPOSING_REGISTERS = {1: 232, 2: 216, 3: 136, 4: 96}
"""The same, if a preparer transposes tiles."""
BOXING_REGISTERS = {1: 240, 2: 224, 3: 152, 4: 104}
"""The same, if the producer copies several boxes at a time."""
PREPARER_REGISTERS, COPYING_REGISTERS, MOST_REGISTERS = 80, 24, 232
"""The least of a thread of a preparer that computes right operands; those of the producer beside it; and the most."""
PREPARED_SLOTS = 3
"""Of a ring of computed operands, at most."""
MOST_PREPARED = 2
"""Consumers beside which there are two warp groups that compute operands."""
OWN_REGISTERS = 32
"""Registers of a thread besides tiles."""
ALL_REGISTERS, THREADS, DOT_REGISTERS = 65536, 128, 26
"""Of a multiprocessor; threads of a warp group; and registers of an instruction besides its accumulator."""
WIDEST = 256
"""Columns of one dot."""

FLOPS = 4096
"""Of dots of 16 bits in a clock; narrower ones are as much faster as they are narrower."""
SHARED_BYTES, L2_BYTES = 128, 46
"""In a clock, of one multiprocessor."""
LANES = 128
"""Of a warp on each scheduler: so many elements take an instruction at a time."""
FUNCTION_CLOCKS = 8
"""Of a warp's functions on one scheduler."""
DOT_ISSUES, REDUCTION_ISSUES = 10, 10
"""Instructions of a thread for each, whatever their size: descriptors, shuffles."""
DOT_GAP = 56
"""Clocks in which tensor cores do nothing for a dot that a consumer waits for."""
MANY, ORDERED_SHOWING = 2, 0.5
"""More consumers than so many use ping-pong, and fewer where schedulers are busier than the unit for functions; the
share of the work between dots that shows then."""
LATENCY = 600
"""Clocks from issuing a copy to its first bytes."""
START, END = 1100, 1200
"""Clocks of a program instance besides iterations: until its first tiles are there, and until a consumer has stored."""
USUAL_LENGTHS = (512, 1024, 2048)
"""Of loops: a block that does not divide them does a part of the last iteration for nothing."""

AT_ONCE = 132
"""Program instances that run at the same time where the GPU is not known."""
CLUSTER, CLUSTER_START, CLUSTER_LENGTH = 2, 5000, 2048
"""Blocks of a cluster; clocks by which a launch takes longer with clusters; a usual length of loops."""
FETCH_SHOWING = 0.04
"""The share of the way from L2 that shows beside dots."""

MEMORY_BYTES = 2200
"""From memory in a clock, for all multiprocessors together."""
MEMORY_LATENCY, ARRIVING_BYTES = 1400, 90
"""Clocks from issuing a copy to its first bytes, where all is read once, out of memory; bytes in a clock after that."""
BANKED_BYTES = 154
"""Of shared memory in a clock, beside dots without anything in between."""
ALONE = 1.05
"""By how much longer tensor cores take for a single consumer, which waits for its own dots."""
PRODUCT_START, PRODUCT_END = 1200, 300
"""Clocks of a program instance besides iterations, and for each consumer's results."""
DEEPEST = 12
"""Slots of rings that are filled in every iteration, at most, where reading takes all the time."""
PARTS = (1, 2, 3, 4, 6, 8, 12, 16)
"""Parts that a depth is tried in: each is one more array of sums to be written and read."""
SUM_BYTES, SUMMING, SUMMING_BYTES = 4, 4800, 3500
"""Of an element of parts; clocks of the kernel that adds them up, besides reading; bytes that it reads in a clock."""
TWICE = 0.25
"""The share of what is read twice that memory sees."""
HIDDEN = 0.05
"""The share that shows of what does not take longest: of reading beside computing, or the other way round."""

COLUMNS = range(16, 257, 16)
COLUMN_GROUP = 32
"""Columns that copies of any type bring."""
LEAST = 64
"""Sizes along axes that a kernel does not have."""
DEPTH_BYTES = (128, 256, 64)
"""Depths of dots. Whole panels first: they are taken where others are no better."""


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
class ModelledDot:
    """A dot of the block's rows in an iteration, with so many columns and such a depth.

    `loaded` is whether its left operand is in shared memory, and not in registers. Elements of its operands have
    `itemsize` bytes.
    """

    columns: Extent
    depth: Extent
    loaded: bool
    itemsize: int = 2


@dataclass(frozen=True)
class Work:
    """Work on tiles of the block's rows, in each iteration: instructions, and functions, for each of their elements.

    Elements that threads load themselves have so many bytes `loaded`.
    """

    columns: Extent
    instructions: float
    functions: int = 0
    loaded: int = 0


@dataclass(frozen=True)
class ModelledRing:
    """Tiles that are loaded, in every iteration or once a program instance. Those `transposed` have a second ring.

    Those `prepared` are not loaded: a preparer computes them, with so many instructions for each element.
    """

    rows: Extent
    columns: Extent
    repeated: bool
    itemsize: int = 2
    transposed: bool = False
    prepared: float = 0.0


@dataclass(frozen=True)
class ModelledIteration:
    """A loop around dots. It goes along sizes in these steps; loops around it have steps, too."""

    steps: tuple[Extent, ...]
    dots: tuple[ModelledDot, ...]
    work: tuple[Work, ...] = ()
    reductions: int = 0
    kept: tuple[Extent, ...] = ()
    """Columns of tiles of the block's rows that it carries, and that are not accumulators of its dots."""
    banded: bool = False
    """Whether its range follows the rows at both ends: each consumer has iterations of its own."""
    ordered: bool = False
    """Whether all consumers have most of its iterations in common, so that ping-pong is possible."""
    clipped: bool = False
    """Whether its end follows the rows, wherever it begins."""


@dataclass(frozen=True)
class Traced:
    """The work of a traced kernel that the model counts."""

    iterations: tuple[ModelledIteration, ...]
    rings: tuple[ModelledRing, ...]
    stored: bool = True
    """Whether its results go out through shared memory."""

    @property
    def transposing(self) -> bool:
        """Whether a preparer transposes tiles."""
        return any(ring.transposed for ring in self.rings)

    @property
    def preparing(self) -> bool:
        """Whether a preparer computes right operands."""
        return any(ring.prepared for ring in self.rings)

    def helpers(self, consumers: int, columns: int) -> int:
        """The warp groups besides consumers and the producer, where the widest dot has so many columns."""
        return preparer_groups(consumers, columns) if self.preparing else int(self.transposing)

    def registers_of(self, consumers: int, columns: int) -> int:
        """The registers of a consumer's thread."""
        if self.preparing:
            return preparing_registers(consumers, preparer_groups(consumers, columns))[-1]
        return (TRANSPOSING_REGISTERS if self.transposing else REGISTERS)[consumers]

    @property
    def axes(self) -> frozenset[Axis]:
        """The axes that its sizes follow."""
        dots = [one for iteration in self.iterations for one in iteration.dots]
        sizes = {one.columns for one in dots} | {one.depth for one in dots}
        sizes |= {one.rows for one in self.rings} | {one.columns for one in self.rings}
        return frozenset(axis for axis in AXES if axis in sizes)


def slot_bytes(rows: int, columns: int, itemsize: int) -> int:
    """Bytes of a tile in shared memory."""
    return rows * -(-columns * itemsize // PANEL_BYTES) * PANEL_BYTES


def _ring_bytes(ring: ModelledRing, block: BlockShape) -> int:
    """Bytes of one slot, and of its transpose where it has one."""
    rows, columns = block.of(ring.rows), block.of(ring.columns)
    found = slot_bytes(rows, columns, ring.itemsize)
    return found + slot_bytes(columns, rows, ring.itemsize) if ring.transposed else found


def slots(traced: Traced, block: BlockShape) -> tuple[int, int] | None:
    """The best depths of rings that fit: of those filled once, and of those filled in every iteration."""
    stored = STAGED * block.consumers if traced.stored else 0
    for once, repeated in DEPTHS:
        depths = [repeated if ring.repeated else once for ring in traced.rings]
        given = zip(depths, traced.rings, strict=True)
        depths = [min(depth, PREPARED_SLOTS) if ring.prepared else depth for depth, ring in given]
        rings = [_ring_bytes(ring, block) * depth for ring, depth in zip(traced.rings, depths, strict=True)]
        if sum(rings) + stored + SMALL <= SHARED:
            return once, repeated
    return None


def registers(traced: Traced, block: BlockShape) -> int:
    """Registers of a consumer's thread at most: accumulators, left operands in registers, and tiles of loops."""
    found = [
        sum(
            block.of(one.columns) // 2 + (0 if one.loaded else block.of(one.depth) * one.itemsize // 8)
            for one in iteration.dots
        )
        + sum(block.of(columns) // 2 for columns in iteration.kept)
        for iteration in traced.iterations
    ]
    return OWN_REGISTERS + max(found, default=0)


def preparer_groups(consumers: int, columns: int) -> int:
    """The warp groups that compute right operands: two if there are registers, also for dots of so many columns."""
    return 2 if consumers <= MOST_PREPARED and columns <= widest_dot(consumers, helpers=2) else 1


def first_registers(groups: int) -> int:
    """The registers that threads of so many warp groups have when they begin."""
    return ALL_REGISTERS // (THREADS * groups) // 8 * 8


def preparing_registers(consumers: int, groups: int) -> tuple[int, int, int]:
    """The registers of a thread of the producer, of so many warp groups of a preparer, and of a consumer."""
    pool = first_registers(1 + groups + consumers) * (1 + groups + consumers) - COPYING_REGISTERS
    most = min(MOST_REGISTERS, (pool - groups * PREPARER_REGISTERS) // consumers // 8 * 8)
    return COPYING_REGISTERS, (pool - most * consumers) // groups // 8 * 8, most


def widest_dot(consumers: int, *, helpers: int = 0) -> int:
    """The most columns of a dot, with so many warp groups besides consumers and the producer.

    Consumers take more registers when they begin, but no instruction may need more than all threads have before that.
    """
    before = first_registers(1 + helpers + consumers)
    return min(WIDEST, 2 * (before - DOT_REGISTERS) // 8 * 8)


def fits(traced: Traced, block: BlockShape) -> bool:
    """Whether a block can be warp-specialized with all its tiles in registers and shared memory."""
    if block.consumers not in REGISTERS or block.m % ROWS:
        return False
    dots = [one for iteration in traced.iterations for one in iteration.dots]
    widest = max(block.of(one.columns) for one in dots)
    if widest > widest_dot(block.consumers, helpers=traced.helpers(block.consumers, widest)):
        return False
    if any(block.of(one.depth) * one.itemsize % STEP_BYTES for one in dots):
        return False
    held = (
        registers(traced, block)
        + max(_loaded(iteration, block) for iteration in traced.iterations) * ROWS // THREADS // 4
    )
    return held <= traced.registers_of(block.consumers, widest) and slots(traced, block) is not None


def _loaded(iteration: ModelledIteration, block: BlockShape) -> int:
    """Bytes for each row that threads load in an iteration, in front of its dots, without waiting for others."""
    return sum(block.of(one.columns) * one.loaded for one in iteration.work)


def _tensor(iteration: ModelledIteration, block: BlockShape) -> float:
    """Clocks of the tensor cores in an iteration."""
    return sum(block.m * block.of(one.columns) * block.of(one.depth) * one.itemsize / FLOPS for one in iteration.dots)


def _read(iteration: ModelledIteration, block: BlockShape) -> int:
    """Bytes of shared memory that dots read in an iteration."""
    return sum(
        (block.consumers * block.of(one.columns) + (block.m if one.loaded else 0)) * block.of(one.depth) * one.itemsize
        for one in iteration.dots
    )


def iteration_clocks(traced: Traced, iteration: ModelledIteration, block: BlockShape) -> float:
    """Clocks of one iteration of all consumers."""
    tensor = _tensor(iteration, block)
    # A thread has half as many elements of a tile as the tile has columns.
    elements = [(one, block.of(one.columns) / 2) for one in iteration.work]
    issues = sum(one.instructions * count for one, count in elements)
    functions = sum(one.functions * count for one, count in elements) * FUNCTION_CLOCKS
    ordered = iteration.ordered and (block.consumers > MANY or issues > functions)
    issues += DOT_ISSUES * len(iteration.dots) + REDUCTION_ISSUES * iteration.reductions
    every = [ring for ring in traced.rings if ring.repeated]
    filled = [(block.of(ring.rows), block.of(ring.columns), ring.itemsize) for ring in every if not ring.prepared]
    moved, written = sum(map(prod, filled)), sum(slot_bytes(*sizes) for sizes in filled)
    # The preparer reads and writes tiles once more.
    written += sum(_ring_bytes(ring, block) for ring in traced.rings if ring.repeated and ring.transposed)
    # A preparer reads tiles, and writes what it makes of them.
    prepared = [ring for ring in every if ring.prepared]
    written += sum(2 * _ring_bytes(ring, block) for ring in prepared)
    preparing = sum(ring.prepared * block.of(ring.rows) * block.of(ring.columns) / LANES for ring in prepared)
    read = _read(iteration, block)
    found = slots(traced, block)
    assert found is not None
    moved += block.m * _loaded(iteration, block)
    # A slot that was released has to be full again when it is needed next.
    arriving = (LATENCY + moved / L2_BYTES) / (found[1] - 1)
    if iteration.work:
        tensor += block.consumers * DOT_GAP * len(iteration.dots)
    computing = tensor, block.consumers * issues, block.consumers * functions
    busiest = max(*computing, (read + written) / SHARED_BYTES, moved / L2_BYTES, preparing)
    # Dots with nothing in between follow each other without a gap.
    if not iteration.work:
        return max(busiest, arriving)
    # Others hide as much of the rest of a consumer's iteration as the busiest part has to do besides.
    shown = 1.0 if block.consumers == 1 else sorted(computing)[1] / max(computing)
    if ordered:
        shown *= ORDERED_SHOWING
    rest = (sum(computing) - max(computing)) / block.consumers
    return max(busiest + shown * rest, arriving)


def instance_clocks(traced: Traced, block: BlockShape) -> float:
    """Clocks of one program instance, as a mean over the usual lengths of loops."""
    total = float(START + END * block.consumers)
    for iteration in traced.iterations:
        steps = [block.of(step) for step in iteration.steps if not isinstance(step, int)]
        counts = [_count(iteration, steps, length) for length in USUAL_LENGTHS]
        total += sum(counts) / len(counts) * iteration_clocks(traced, iteration, block)
    found = slots(traced, block)
    assert found is not None
    # Without a second slot the first tiles are copied only when the program instance begins.
    alone = any(not ring.repeated for ring in traced.rings) and found[0] == 1
    return total + (LATENCY if alone else 0)


def _count(iteration: ModelledIteration, steps: Sequence[int], length: int) -> float:
    """The number of iterations of a loop. One whose end follows the rows ends halfway in the mean."""
    beyond = _beyond(iteration, steps)
    if iteration.clipped and not iteration.banded:
        return prod((length / 2 + beyond) / step for step in steps)
    return prod(-(-(length + beyond) // step) for step in steps)


def _beyond(iteration: ModelledIteration, steps: Sequence[int]) -> int:
    """By how much the range of all rows of a consumer is longer than that of one row: by rows, and by parts of steps.

    That is at both ends of bands; where only the end follows the rows, it is half of it.
    """
    ends = 2 if iteration.banded else int(iteration.clipped)
    return (ROWS + steps[0] - gcd(ROWS, steps[0])) * ends // 2 if steps else 0


def blocks(traced: Traced) -> Iterator[BlockShape]:
    """The blocks that fit."""
    axes = traced.axes
    narrowest = min(one.itemsize for iteration in traced.iterations for one in iteration.dots)
    depths = [nbytes // narrowest for nbytes in DEPTH_BYTES]
    for consumers in REGISTERS:
        for n in COLUMNS if "n" in axes else (LEAST,):
            for k in depths if "k" in axes else (LEAST,):
                if fits(traced, block := BlockShape(consumers * ROWS, n, k)):
                    yield block


def waves(instances: int, multiprocessors: int) -> int:
    """The number of program instances of the busiest multiprocessor."""
    return -(-instances // multiprocessors)


def cluster_for(shared: int, step: int, instances: int) -> int:
    """The size of a cluster whose CTAs share tiles: `shared` bytes in an iteration, which goes `step` along a loop.

    Each CTA copies a part of them, and waits for the others when it begins and when it ends.
    """
    saved = shared * (CLUSTER - 1) / CLUSTER / L2_BYTES * FETCH_SHOWING
    return CLUSTER if waves(instances, AT_ONCE) * (CLUSTER_LENGTH // step) * saved > CLUSTER_START else 1


def ranked(traced: Traced, instances: Callable[[BlockShape], int], multiprocessors: int) -> list[BlockShape]:
    """The blocks that fit, the fastest first; `instances` gives the number of program instances for a block."""

    def clocks(block: BlockShape) -> float:
        return waves(instances(block), multiprocessors) * instance_clocks(traced, block)

    return sorted(blocks(traced), key=clocks)


class ProductSizes(NamedTuple):
    """The sizes of a product: rows, columns, its depth, and how many there are; and bytes of an element."""

    rows: int
    columns: int
    depth: int
    batch: int = 1
    itemsize: int = 2

    def tiles(self, block: BlockShape) -> int:
        """The number of blocks of the result."""
        return -(-self.rows // block.m) * -(-self.columns // block.n) * self.batch


class ProductSplit(NamedTuple):
    """A block, in how many parts the depth is multiplied, and how many slots rings have."""

    block: BlockShape
    parts: int = 1
    depth: int = 4


def deepest(traced: Traced, block: BlockShape) -> int:
    """How many slots rings that are filled in every iteration can have."""
    stored = STAGED * block.consumers if traced.stored else 0
    once = sum(2 * _ring_bytes(ring, block) for ring in traced.rings if not ring.repeated)
    repeated = sum(_ring_bytes(ring, block) for ring in traced.rings if ring.repeated)
    return min(DEEPEST, (SHARED - SMALL - stored - once) // max(1, repeated))


def product_clocks(traced: Traced, split: ProductSplit, sizes: ProductSizes, multiprocessors: int) -> float:
    """Clocks until a product is done that reads its operands out of memory, what adds up its parts included.

    It takes as long as the busiest multiprocessor, or as memory takes for all of them.
    """
    (block, parts, _), (iteration,) = split, traced.iterations
    steps = ceil(ceil(sizes.depth / block.k) / parts)
    clocks = _product_iteration(traced, iteration, split, sizes.rows)
    one = PRODUCT_START + PRODUCT_END * block.consumers + steps * clocks
    computing = waves(sizes.tiles(block) * parts, multiprocessors) * one
    reading = PRODUCT_START + PRODUCT_END + _once(traced, block, sizes) / MEMORY_BYTES
    total = max(computing, reading) + HIDDEN * min(computing, reading)
    stored = sizes.rows * sizes.columns * sizes.batch
    if parts > 1:
        summed = parts * stored * SUM_BYTES
        total += SUMMING + summed / MEMORY_BYTES + summed / SUMMING_BYTES
    return total + stored * sizes.itemsize / MEMORY_BYTES


def _once(traced: Traced, block: BlockShape, sizes: ProductSizes) -> float:
    """Bytes of the operands; what fills up a panel is read by two program instances."""
    found = 0.0
    for ring in (one for one in traced.rings if one.repeated):
        length = sizes.rows if "m" in (ring.rows, ring.columns) else sizes.columns
        plain = block.of(ring.rows) * block.of(ring.columns) * ring.itemsize
        found += length * sizes.depth * ring.itemsize * (1 + TWICE * (_ring_bytes(ring, block) / plain - 1))
    return found * sizes.batch


def _product_iteration(traced: Traced, iteration: ModelledIteration, split: ProductSplit, rows: int) -> float:
    """Clocks of an iteration: of the tensor cores, of shared memory, and until a slot that was released is full."""
    block = split.block
    # Rows that are not there are not read.
    held = block._replace(m=min(block.m, rows))
    moved, written = (sum(_ring_bytes(one, by) for one in traced.rings if one.repeated) for by in (held, block))
    arriving = (MEMORY_LATENCY + moved / ARRIVING_BYTES) / (split.depth - 1)
    tensor = _tensor(iteration, block) * (ALONE if block.consumers == 1 else 1)
    return max(tensor, (_read(iteration, block) + written) / BANKED_BYTES, arriving)


def splits(
    traced: Traced, sizes: ProductSizes, multiprocessors: int, parts: Sequence[int] = PARTS
) -> list[ProductSplit]:
    """The blocks that fit, each in the best number of parts of the depth, the fastest first."""
    found: list[tuple[float, ProductSplit]] = []
    for block in blocks(traced):
        most, depth = max(1, sizes.depth // block.k), deepest(traced, block)
        tried = [ProductSplit(block, count, depth) for count in parts if count <= most]
        found.append(min((product_clocks(traced, one, sizes, multiprocessors), one) for one in tried))
    return [one for _, one in sorted(found, key=lambda pair: pair[0])]


def best_by_consumers(traced: Traced, fixed: tuple[int, ...] = ()) -> dict[int, BlockShape]:
    """For each number of consumers the block with which rows take the fewest clocks, the best of all first.

    It assumes many program instances, one for each block of rows, and of columns where they are divided. Blocks begin
    with the sizes `fixed`.
    """
    found: dict[int, BlockShape] = {}
    open_ = [block for block in blocks(traced) if block[: len(fixed)] == fixed]
    columns = divides_columns(traced)

    def share(block: BlockShape) -> int:
        return block.m * (block.n if columns else 1)

    for block in sorted(open_, key=lambda block: instance_clocks(traced, block) / share(block)):
        found.setdefault(block.consumers, block)
    return found


def best_by_columns(traced: Traced, fixed: tuple[int, ...] = ()) -> list[BlockShape]:
    """For each number of consumers and of columns, whole groups of them, the block that takes the fewest clocks."""
    found: dict[tuple[int, int], BlockShape] = {}
    open_ = [block for block in blocks(traced) if block[: len(fixed)] == fixed and block.n % COLUMN_GROUP == 0]
    for block in sorted(open_, key=lambda block: instance_clocks(traced, block) / block.k):
        found.setdefault((block.consumers, block.n), block)
    return list(found.values())


def divides_columns(traced: Traced) -> bool:
    """Whether each program instance has some columns of the result: dots have as many as a block, and no loop goes
    along them."""
    stepped = {step for iteration in traced.iterations for step in iteration.steps}
    return "n" in traced.axes and "n" not in stepped
