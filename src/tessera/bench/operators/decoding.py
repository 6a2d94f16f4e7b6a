"""Attention of a few queries to many keys, as one decodes: keys are split among programs, and their parts combined."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from tessera.bench.kernels import attention_into
from tessera.cached import cached_property
from tessera.dtypes.types import f32
from tessera.runtime.tensor.creation import empty, empty_like
from tessera.runtime.tensor.tensor import Tensor
from tessera.tile.calls.function import kernel
from tessera.tile.language import intrinsics as tile
from tessera.tile.language.schedule import Schedule

__written_like_a_user__ = True  # errors and IR point at the lines of this file

BLOCK = (64, 128)
"""Queries and keys of a turn: so many keys keep memory busy while one turn is computed, and fit thrice."""
BEGINNING, COMBINING = 1, 3
"""Turns that a program takes besides its own, and those of a second launch."""


@kernel
def decode_parts(parts: Any, logs: Any, q: Any, k: Any, v: Any, span: int):
    """Part `s` of [..., splits, G, D]: G queries, and the keys from `s`·`span` on, `span` of them.

    `parts` are normalised; `logs` are the logarithms of what they were divided by. G query heads that share keys are
    the rows of one tile.
    """
    here = tile.context()
    splits = parts.shape[-3]
    first = (here.batch % splits) * span
    stop = tile.minimum(first + span, k.shape[-2])
    queries = tile.load(here.matrix(q), at=(0, 0), shape=(here.m, here.d))
    acc, top, total = tile.zeros((here.m, here.d)), tile.full((here.m,), -tile.INF), tile.zeros((here.m,))
    for row in tile.range(first, stop, here.n):
        scores = tile.dot(queries, tile.load(k, row, rows=here.n).T) * here.d**-0.5
        scores = tile.where(tile.iota((1, here.n), 1, row) < stop, scores, -tile.INF)
        weights, block_top, block_total = tile.softmax_online(scores)
        block_v = tile.load(v, row, rows=here.n)
        acc, top, total = tile.softmax_accumulate(acc, top, total, weights, block_v, block_top, block_total)
    tile.store(parts, acc / total[:, None])
    tile.store(logs, (top + tile.log(total))[:, None])


@kernel
def combine(parts: Any, logs: Any, out: Any):
    """The parts of one query, the rows of [..., splits, D], weighted by what they stand for, all at once."""
    here = tile.context()
    stands = tile.load(here.matrix(logs), at=(0, 0), shape=(here.m, 1), pad=-tile.INF)
    most = tile.max(stands, axis=0, keepdims=True)
    # A part without keys weighs nothing; where all are like that, so does their sum.
    weights = tile.exp(stands - tile.where(most > -tile.INF, most, 0.0))
    total = tile.sum(weights, axis=0, keepdims=True)
    whole = tile.sum(weights * tile.load(parts), axis=0, keepdims=True) / total
    tile.store(here.matrix(out), tile.cast(whole, out.dtype), at=(0, 0))


class Split(NamedTuple):
    """How keys are shared: among so many programs for each group of queries, `span` keys for each."""

    programs: int
    span: int


def split(groups: int, keys: int, multiprocessors: int, block: int) -> Split:
    """The split with which all programs are done first: whole rounds of them, and few parts to combine."""
    turns = max(1, -(-keys // block))

    def clocks(programs: int) -> int:
        rounds = -(-groups * programs // multiprocessors)
        return rounds * (-(-turns // programs) + BEGINNING) + (COMBINING if programs > 1 else 0)

    each = -(-turns // min(range(1, turns + 1), key=clocks))
    return Split(-(-turns // each), each * block)


@dataclass(frozen=True)
class Decoding:
    """Attention of queries [..., G, D] to keys [..., T, D], G heads for each of the keys' heads, with its workspace."""

    q: Tensor
    k: Tensor
    v: Tensor
    split: Split
    block: tuple[int, int] = BLOCK

    def __call__(self) -> Tensor:
        found = empty_like(self.q)
        for step in self.steps(found):
            step()
        return found

    def steps(self, found: Tensor) -> list[partial[Any]]:
        """Calls of kernels that fill a result. Where keys are not split, it is plain attention."""
        if self.split.programs == 1:
            return [partial(attention_into.with_schedule(Schedule(block=self.block)), self.q, self.k, self.v, found)]
        parts, logs = self.workspace
        made = partial(
            decode_parts.with_schedule(Schedule(block=self.block)), parts, logs, self.q, self.k, self.v, self.split.span
        )
        *leading, width = found.shape
        together = combine.with_schedule(Schedule(block=(-(-self.split.programs // 16) * 16, 16)))
        rows = parts.transpose(-3, -2), logs.transpose(-3, -2), found.reshape((*leading, 1, width))
        return [made, partial(together, *rows)]

    @cached_property
    def workspace(self) -> tuple[Tensor, Tensor]:
        """Parts, and their logarithms."""
        *leading, heads, width = self.q.shape
        sizes = *leading, self.split.programs, heads
        return empty((*sizes, width), f32, self.q.device), empty((*sizes, 1), f32, self.q.device)
