"""Attention of a few queries to many keys, as when decoding: keys are split among program instances (split-K)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from tessera.cached_property import cached_property
from tessera.dtypes.types import f32
from tessera.runtime.tensor.creation import empty, empty_like
from tessera.runtime.tensor.tensor import Tensor
from tessera.stdlib import attention_into
from tessera.tile.calls.function import kernel
from tessera.tile.language import intrinsics as tile
from tessera.tile.language.schedule import Schedule

__written_like_a_user__ = True  # errors and IR point at the lines of this file

BLOCK = (64, 128)
"""Queries and keys of an iteration: enough to keep memory busy during one, and few enough for three stages."""
BEGINNING, COMBINING = 1, 3
"""The fixed cost of a program instance, and that of a second launch, in iterations."""


@kernel
def decode_parts(parts: Any, logs: Any, q: Any, k: Any, v: Any, span: int):
    """Part `s` of [..., splits, G, D]: attention of G queries to `span` keys, from `s`·`span` on.

    `parts` are normalised; `logs` are their log-sum-exps. G query heads that share keys are the rows of one tile.
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
    """Combines the parts of one query, the rows of [..., splits, D], weighted by their log-sum-exps, at once."""
    here = tile.context()
    logarithms = tile.load(here.matrix(logs), at=(0, 0), shape=(here.m, 1), pad=-tile.INF)
    most = tile.max(logarithms, axis=0, keepdims=True)
    # A part without keys weighs nothing; where all are like that, so does their sum.
    weights = tile.exp(logarithms - tile.where(most > -tile.INF, most, 0.0))
    total = tile.sum(weights, axis=0, keepdims=True)
    whole = tile.sum(weights * tile.load(parts), axis=0, keepdims=True) / total
    tile.store(here.matrix(out), tile.cast(whole, out.dtype), at=(0, 0))


class Split(NamedTuple):
    """How keys are split: among so many program instances for each group of queries, `span` keys for each."""

    instances: int
    span: int


def split(groups: int, keys: int, multiprocessors: int, block: int) -> Split:
    """The split that takes the least time: whole waves of program instances, and few parts to combine."""
    iterations = max(1, -(-keys // block))

    def clocks(instances: int) -> int:
        waves = -(-groups * instances // multiprocessors)
        return waves * (-(-iterations // instances) + BEGINNING) + (COMBINING if instances > 1 else 0)

    each = -(-iterations // min(range(1, iterations + 1), key=clocks))
    return Split(-(-iterations // each), each * block)


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
        """Calls of kernels that fill a result. Where keys are not split, it is one of plain attention."""
        if self.split.instances == 1:
            return [partial(attention_into.with_schedule(Schedule(block=self.block)), self.q, self.k, self.v, found)]
        parts, logs = self.workspace
        made = partial(
            decode_parts.with_schedule(Schedule(block=self.block)), parts, logs, self.q, self.k, self.v, self.split.span
        )
        *leading, width = found.shape
        together = combine.with_schedule(Schedule(block=(-(-self.split.instances // 16) * 16, 16)))
        rows = parts.transpose(-3, -2), logs.transpose(-3, -2), found.reshape((*leading, 1, width))
        return [made, partial(together, *rows)]

    @cached_property
    def workspace(self) -> tuple[Tensor, Tensor]:
        """Parts, and their logarithms."""
        *leading, heads, width = self.q.shape
        sizes = *leading, self.split.instances, heads
        return empty((*sizes, width), f32, self.q.device), empty((*sizes, 1), f32, self.q.device)
