"""Blocks for regions around matmuls on GPUs, where Schedule IR leaves them open.

On sm_90a a region is written once with sizes that differ from all others; `modelled_work.py` reads from it the dots,
loads and other work of iterations, and the model (`multiprocessor_model.py`) ranks blocks. Elsewhere, and where a
region cannot be warp-specialized, there is one block for each kind and width of elements.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from types import MappingProxyType

from xdsl.dialects.builtin import ModuleOp

from tessera.ir.common.elementwise import TABLE
from tessera.ir.common.schedule_attributes import Config, ConfigAttr
from tessera.ir.graph import dialect as graph
from tessera.ir.graph.types import graph_type
from tessera.ir.schedule import dialect as schedule
from tessera.shapes.expr import Size, hinted
from tessera.targets.cuda.hopper.modelled_work import work_of
from tessera.targets.cuda.lower.multiprocessor_model import (
    DEPTHS,
    PARTS,
    REGISTERS,
    ROWS,
    THREADS,
    Axis,
    BlockShape,
    ProductSizes,
    ProductSplit,
    Traced,
    best_by_consumers,
    ranked,
    splits,
    waves,
)
from tessera.transforms.fusion.emit_tile_matmuls import Spaces, folds, matmul_of, spaces_of
from tessera.transforms.fusion.emit_tile_online import online_of
from tessera.transforms.fusion.gemv_fusion import is_held, is_short
from tessera.transforms.fusion.online_algebra import width_of
from tessera.transforms.fusion.schedule_to_tile import WRITERS
from tessera.transforms.fusion.split_depth import why_whole

WARP_SPECIALIZED = "sm_90a"
MULTIPROCESSORS = 132
MANY = 2048
"""Assumed size along an axis whose size is not known."""
_MOST = 4
FEW = 1
"""Blocks of a result to a multiprocessor, up to which products are few rows or columns: they may be done in parts."""
LONG_KEYS = 4096
"""Assumed length of keys of few queries, where it is not known."""
MOST_PARTS = 128
FEW_CONSUMERS = 2
BEGINNING, COMBINING = 1, 3
"""The fixed cost of a program instance, and that of a second launch, in iterations over keys of few queries."""
SECTOR = 256
"""Bits that memory is read by."""
READS = {"online": 4, "matmul": 16}
"""Reads that a thread has in flight: many for a matmul, whose accumulators are reduced over all warps in the end."""
PIECE = 128
"""Bits that a thread reads at once."""
THREADS_OF_A_WARP = 32
LONG = 8
"""Instructions of an elementwise op that takes many: several elements are worked on at a time."""
ACCUMULATOR_SHARE = 0.42
"""The share of a thread's registers that accumulators may take beside long functions. With 128 by 256, erf spilled."""


def blocks_for(
    region: schedule.RegionOp,
    arch: str,
    multiprocessors: int = MULTIPROCESSORS,
    hints: Mapping[str, int] = MappingProxyType({}),
) -> list[Config]:
    """The blocks worth trying, the best first. `hints` say about how large symbols are."""
    if (found := _of_one_row(region, multiprocessors)) is not None:
        return found
    found = _by_model(region, multiprocessors, hints) if arch == WARP_SPECIALIZED else []
    return [*found, _portable(region, multiprocessors, hints)]


def _of_one_row(region: schedule.RegionOp, multiprocessors: int) -> list[Config] | None:
    """Blocks of matmuls whose left operand is a row: reading the right one is all the work, so it is read at once.

    Program instances are many, and narrow, but not narrower than memory is read. None where there is too much to be
    held, or so much to read that it has to go on while instances compute.
    """
    spaces, bits = _spaces(region)
    if spaces.rows != 1 or not isinstance(spaces.depth, int):
        return None
    if region.kind.data == "online":
        width, bits = width_of(online_of(region))
        if not is_held(spaces.depth, width, bits):
            return None
        return [Config(block=(1, spaces.depth), warps=_warps(spaces.depth * width * bits, READS["online"]))]
    op = matmul_of(region)
    narrow = SECTOR // graph_type(op.b).dtype.bits
    wide = [narrow * 2**more for more in range(3) if is_held(spaces.depth, narrow * 2**more, bits)]
    if not wide or not (folds(region) or is_short(op.b)):
        return None
    filling = [n for n in wide if _count(spaces.columns) * _count(spaces.batch) >= n * multiprocessors]
    first = filling[-1] if filling else narrow
    order = sorted(wide, key=lambda n: abs(n - first))
    return [Config(block=(1, n, spaces.depth), warps=_warps(spaces.depth * n * bits, READS["matmul"])) for n in order]


def _warps(bits: int, reads: int) -> int:
    """The number of warps with which a thread reads some pieces of 16 bytes at once."""
    threads = bits // (reads * PIECE)
    return max(4, min(16, 1 << max(0, (threads // THREADS_OF_A_WARP).bit_length() - 1)))


def _by_model(region: schedule.RegionOp, multiprocessors: int, hints: Mapping[str, int]) -> list[Config]:
    wanted = 3 if region.kind.data == "matmul" else 2
    probe = _probe(region, wanted)
    if probe is None:
        return []
    asked = region.clone()
    asked.properties["config"] = ConfigAttr(Config(block=probe))
    function = WRITERS[region.kind.data]("probe", asked)
    holder = ModuleOp([function])
    names: tuple[Axis, ...] = ("m", "n", "k")
    axes = dict(zip(probe, names[:wanted], strict=True))
    # Rows of all arrays are assumed to be aligned, as warp specialization needs them.
    traced = work_of(function, axes, range(len(function.arguments)))
    holder.erase()
    if traced is None:
        return []
    if region.kind.data == "matmul":
        return _ranked(region, traced, multiprocessors, hints)
    found = list(best_by_consumers(traced).values())
    if few := [block for block in found if _has_few_rows(region, block)]:
        return [_split(region, (block.m, block.n), multiprocessors, hints) for block in few]
    return [Config(block=tuple(block)[:wanted]) for block in found]


# Few rows: keys are split among program instances.


def _has_few_rows(region: schedule.RegionOp, block: BlockShape) -> bool:
    """Whether all rows of a matrix are in one block of few consumers, none of which is without rows."""
    rows = online_of(region).spaces.rows
    return isinstance(rows, int) and block.consumers <= FEW_CONSUMERS and block.m - ROWS < rows <= block.m


def _split(region: schedule.RegionOp, block: tuple[int, int], multiprocessors: int, hints: Mapping[str, int]) -> Config:
    """A block, and the split that takes the least time: whole waves of program instances, and few parts to combine.

    Where symbols say how many matrices there are, they are taken to be few: that is what a split is for.
    """
    spaces = online_of(region).spaces
    batch = spaces.batch if isinstance(spaces.batch, int) else _least(spaces.batch, hints)
    keys = hinted(spaces.depth, hints)
    iterations = max(1, -(-(keys if isinstance(keys, int) else LONG_KEYS) // block[1]))

    def clocks(parts: int) -> int:
        each = -(-iterations // parts) + BEGINNING
        return waves(batch * parts, multiprocessors) * each + (COMBINING if parts > 1 else 0)

    most = min(iterations, MOST_PARTS)
    if isinstance(spaces.batch, int) and isinstance(spaces.depth, int):
        each = -(-iterations // min(range(1, most + 1), key=clocks))
        parts = -(-iterations // each)
    else:
        # Programs for classes of sizes are to be few.
        parts = min((1 << power for power in range((most - 1).bit_length() + 1)), key=clocks)
    return Config(block=block, split=parts if parts > 1 else None)


def _least(batch: Size, hints: Mapping[str, int]) -> int:
    """How many matrices there are where symbols without a hint are 1."""
    found = hinted(batch, hints)
    return found if isinstance(found, int) else max(1, found.evaluate(dict.fromkeys(found.symbols, 1)))


def _ranked(region: schedule.RegionOp, traced: Traced, multiprocessors: int, hints: Mapping[str, int]) -> list[Config]:
    op = matmul_of(region)
    spaces = spaces_of(op)
    sizes = hinted(spaces.rows, hints), hinted(spaces.columns, hints), hinted(spaces.depth, hints)
    rows, columns, depth, batch = (_count(size) for size in (*sizes, hinted(spaces.batch, hints)))
    extents = ProductSizes(rows, columns, depth, batch, graph_type(op.b).dtype.storage.itemsize)
    long = any(isinstance(one, graph.EwOp) and TABLE[one.fn.data].cost.simple >= LONG for one in region.body.walk())
    found = ranked(traced, extents.tiles, multiprocessors)
    fitting = [block for block in found if not long or _has_room(block)][:_MOST]
    known = all(isinstance(size, int) for size in sizes) and len(traced.iterations) == 1
    if not known or not fitting or extents.tiles(fitting[0]) > FEW * multiprocessors:
        return [Config(block=tuple(block)) for block in fitting]
    # Long functions are computed behind, of sums that another kernel reads.
    parts = (1,) if why_whole(region) is not None else PARTS
    tried = [one for one in splits(traced, extents, multiprocessors, parts) if not long or _has_room(one.block)]
    return list(map(_config, tried[:_MOST]))


def _config(split: ProductSplit) -> Config:
    """The config of a product in parts; rings as deep as every kernel's are not mentioned."""
    parts, depth = split.parts if split.parts > 1 else None, split.depth if split.depth > DEPTHS[0][1] else None
    return Config(block=tuple(split.block), stages=depth, split=parts)


def _has_room(block: BlockShape) -> bool:
    """Whether threads have registers for what long functions hold between their steps, beside accumulators."""
    return ROWS * block.n / THREADS <= ACCUMULATOR_SHARE * REGISTERS[block.consumers]


def _count(size: Size) -> int:
    return size if isinstance(size, int) else MANY


def _portable(region: schedule.RegionOp, multiprocessors: int, hints: Mapping[str, int]) -> Config:
    """Blocks for GPUs of all kinds."""
    spaces, bits = _spaces(region)
    rows, columns, keys = (hinted(size, hints) for size in (spaces.rows, spaces.columns, spaces.depth))
    if region.kind.data == "matmul":
        block = (128, 128, 64) if bits <= 16 else (64, 64, 32)
        depth = spaces.depth if isinstance(spaces.depth, int) and spaces.depth > 0 else block[2]
        return Config(block=(_fitting(block[0], rows), _fitting(block[1], columns), min(block[2], depth)))
    block = (128, 64) if bits <= 16 else (64, 64)
    fitting = _fitting(block[0], rows), _fitting(block[1], keys)
    if isinstance(spaces.rows, int) and 0 < spaces.rows <= fitting[0]:
        return _split(region, fitting, multiprocessors, hints)
    return Config(block=fitting)


def _spaces(region: schedule.RegionOp) -> tuple[Spaces, int]:
    if region.kind.data == "matmul":
        op = matmul_of(region)
        return spaces_of(op), graph_type(op.a).dtype.bits
    online = online_of(region)
    return online.spaces, graph_type(online.values.a).dtype.bits


def _fitting(wanted: int, size: Size) -> int:
    """No more than there are, in whole steps of what matrix instructions take."""
    return min(wanted, max(16, -(-size // 16) * 16)) if isinstance(size, int) else wanted


def _probe(region: schedule.RegionOp, count: int) -> tuple[int, ...] | None:
    """A block whose sizes occur nowhere else in the region."""
    tensors = [graph_type(value) for op in region.body.walk() for value in (*op.operands, *op.results)]
    sizes = {size for tensor in tensors for size in tensor.shape}
    for block in product((128, 64, 192), (96, 32, 160, 224), (288, 352, 416, 480)):
        if not sizes & set(block[:count]):
            return block[:count]
    return None
