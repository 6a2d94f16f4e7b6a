"""Blocks of pointwise and rows regions: which variables of the space become axes of tiles, and how long those are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from xdsl.ir import SSAValue

from tessera.errors import CompileError, SourceSpan
from tessera.ir.common.schedule_attributes import Config
from tessera.ir.graph.types import graph_type
from tessera.shapes.expr import Size, dim, element_count, format_shape
from tessera.transforms.core.index_maps import Coordinates, Looked, Var
from tessera.transforms.fusion.region_spaces import Space

# Rows up to this many bytes in the type they are folded in are held whole; longer ones are read again in every loop.
_LONGEST_ROW = 16384
_COLUMNS = 1024
"""The columns of a block of a longer row, or of a pointwise region."""
_UNKNOWN = 64
"""The same where the length of rows is not known: what lies beyond them is tested element by element."""
_VECTOR = 8
_TILE = 16384
"""Elements of a tile: enough for a program instance, few enough for the nearest caches and a block's registers."""
_LOOPED = 4096
"""Elements of a tile of rows that are read in loops."""
_MOST_ROWS = 64


def contiguous(space: Space, results: Sequence[SSAValue]) -> Var | None:
    """The variable along which most of what is read and written lies side by side."""
    votes: dict[Var, int] = defaultdict(int)
    results_at = [(value, space.coordinates[value]) for value in results]
    for value, at in [*results_at, *space.reads]:
        var = innermost(at)
        if var is not None:
            width = graph_type(value).dtype.storage.itemsize
            volume = 1
            for other in {other for index in at for other in index.variables()}:
                volume *= other.extent if isinstance(other.extent, int) else 256
            votes[var] += width * volume
    return max(votes, key=lambda var: votes[var], default=None)


def innermost(at: Coordinates) -> Var | None:
    """The variable whose neighbours are neighbours in memory, where rows lie one behind the other."""
    for index in reversed(at):
        for atom, factor in index.terms:
            if isinstance(atom, Var) and factor == dim(1):
                return atom
        if index.terms:
            return None
    return None


def _looked_by(space: Space) -> set[Var]:
    """Variables that choose what is looked up: where they count one by one, whole rows are read."""
    return {
        var
        for _, at in space.reads
        for index in at
        for atom, _ in index.terms
        if isinstance(atom, Looked)
        for inner in atom.at
        for var in inner.variables()
    }


def choose_block(space: Space, results: Sequence[SSAValue], instances: int = 0) -> Config:
    """One block size for each variable of a space, those of reductions last.

    Blocks of rows are no larger than leaves so many program instances, if there are as many rows.
    """
    variables = space.variables
    inner = contiguous(space, results)
    looked = _looked_by(space)
    blocks = dict.fromkeys(variables, 1)
    if space.rows:
        _choose_rows(space, inner, blocks, instances)
    else:
        _choose_pointwise(space, results, inner, looked, blocks)
    return Config(block=tuple(blocks[var] for var in variables))


def _bounded(extent: Size, most: int) -> int:
    return max(1, min(extent, most)) if isinstance(extent, int) else most


def _columns(extent: Size, unknown: int = _UNKNOWN) -> int:
    return _even(extent, _COLUMNS) if isinstance(extent, int) else unknown


def _even(extent: Size, most: int) -> int:
    """A length of blocks that leaves no rest, if there is one that is not too short."""
    if not isinstance(extent, int) or extent <= most:
        return _bounded(extent, most)
    lengths = range(most - most % _VECTOR, most // 4, -_VECTOR)
    whole = next((length for length in lengths if extent % length == 0), None)
    return most if whole is None else whole


def _choose_rows(space: Space, inner: Var | None, blocks: dict[Var, int], instances: int) -> None:
    row = next((var for var in reversed(space.rows) if var is inner), space.rows[-1])
    kept = [var for var in space.variables if var not in space.rows and var.extent != 1]
    if inner is None or inner in space.rows or inner not in kept:
        # Rows lie along the lanes.
        single = len(space.rows) == 1 and isinstance(row.extent, int) and row.extent <= _LONGEST_ROW
        blocks[row] = (
            max(1, row.extent) if single and isinstance(row.extent, int) else _columns(row.extent, 2 * _UNKNOWN)
        )
        if kept:
            # What is stored in loops is not divided any further: a block of threads holds all of it.
            most = _TILE if single else _LOOPED
            several = max(1, min(16, most // blocks[row]))
            count = element_count([var.extent for var in kept])
            if instances and isinstance(count, int):
                several = max(1, min(several, count // instances))
            blocks[kept[-1]] = _bounded(kept[-1].extent, several)
        return
    # Columns lie along the lanes, and rows are folded one behind the other.
    blocks[inner] = _even(inner.extent, 64)
    if len(space.rows) == 1 and isinstance(row.extent, int) and row.extent <= _TILE // 16:
        blocks[inner] = _even(inner.extent, min(64, _TILE // max(1, row.extent)))
        blocks[row] = max(1, row.extent)
    else:
        blocks[row] = _even(row.extent, 32)


def _choose_pointwise(
    space: Space, results: Sequence[SSAValue], inner: Var | None, looked: set[Var], blocks: dict[Var, int]
) -> None:
    large = [var for var in space.kept if var.extent != 1 and (var not in looked or var is inner)]
    if inner is None or inner not in large:
        inner = large[-1] if large else None
    if inner is None:
        return
    # Where some of it lies along another variable, the tile is transposed on the way: both get the same length.
    transposed = [var for _, at in space.reads if (var := innermost(at)) in large and var is not inner]
    transposed += [
        var for value in results if (var := innermost(space.coordinates[value])) in large and var is not inner
    ]
    if transposed:
        blocks[inner], blocks[transposed[0]] = _bounded(inner.extent, 64), _bounded(transposed[0].extent, 64)
        return
    blocks[inner] = _columns(inner.extent)
    others = [var for var in large if var is not inner]
    if others:
        blocks[others[-1]] = _bounded(others[-1].extent, max(1, min(_MOST_ROWS, _TILE // blocks[inner])))


def tile_axes(
    space: Space, config: Config, results: Sequence[SSAValue], span: SourceSpan | None
) -> tuple[list[Var], dict[Var, int]]:
    """The variables that are axes of tiles, and the block size of each variable, as a config has it."""
    variables = space.variables
    what = f"a region over {format_shape([var.extent for var in variables])}"
    if config.block is None or len(config.block) != len(variables):
        raise CompileError(
            f"{what} needs a block of {len(variables)} sizes, got {config.block}",
            span=span,
            hint="give the region a config with one block size per axis: those of its results, then those it folds",
        )
    blocks = dict(zip(variables, config.block, strict=True))
    axes = [var for var in variables if blocks[var] > 1]
    if len(axes) > 2:
        raise CompileError(
            f"{what} has a block of {list(config.block)}, and tiles have at most two axes",
            span=span,
            hint="leave all but two sizes of the block at 1",
        )
    if len(space.rows) and not any(var in axes for var in space.rows):
        axes = [*axes[-1:], space.rows[-1]]
    inner = contiguous(space, results)
    return sorted(axes, key=lambda var: var is inner), blocks
