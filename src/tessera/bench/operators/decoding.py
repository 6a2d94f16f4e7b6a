"""Attention of a few queries to many keys, as one decodes: keys are split among programs, and their parts combined."""

from __future__ import annotations

from typing import Any

from tessera.kernels import intrinsics as tile
from tessera.kernels.function import kernel

__written_like_a_user__ = True  # errors and IR point at the lines of this file


@kernel
def decode_parts(parts: Any, logs: Any, q: Any, k: Any, v: Any, span: int):
    """Part `s` of [..., splits, G, D]: G queries, and the keys from `s`·`span` on, `span` of them.

    `parts` are normalised; `logs` are the logarithms of what they were divided by. G query heads that share keys are
    the rows of one tile.
    """
    here = tile.context()
    splits = parts.shape[-3]
    keys, values = here.matrix(k), here.matrix(v)
    first = (here.batch % splits) * span
    stop = tile.minimum(first + span, k.shape[-2])
    queries = tile.load(here.matrix(q), at=(0, 0), shape=(here.m, here.d))
    acc, top, total = tile.zeros((here.m, here.d)), tile.full((here.m,), -tile.INF), tile.zeros((here.m,))
    for row in tile.range(first, stop, here.n):
        scores = tile.dot(queries, tile.load(keys, at=(row, 0), shape=(here.n, here.d)).T) * here.d**-0.5
        scores = tile.where(tile.iota((1, here.n), 1, row) < stop, scores, -tile.INF)
        weights, block_top, block_total = tile.softmax_online(scores)
        block_v = tile.load(values, at=(row, 0), shape=(here.n, here.d))
        acc, top, total = tile.softmax_accumulate(acc, top, total, weights, block_v, block_top, block_total)
    tile.store(parts, acc / total[:, None])
    tile.store(logs, (top + tile.log(total))[:, None])


@kernel
def combine(q: Any, parts: Any, logs: Any, splits: int):
    """The parts of each query of [..., G, D], weighted by what they stand for: rows `s`·G on are those of part `s`."""
    here = tile.context()
    given, weighed, queries = here.matrix(parts), here.matrix(logs), q.shape[-2]
    acc, top, total = tile.zeros((here.m, here.d)), tile.full((here.m, 1), -tile.INF), tile.zeros((here.m, 1))
    for part in tile.range(0, splits, 1):
        log = tile.load(weighed, at=(part * queries, 0), shape=(here.m, 1))
        most = tile.maximum(top, log)
        # A part without keys weighs nothing; where all are like that, so does their sum.
        base = tile.where(most > -tile.INF, most, 0.0)
        kept, added = tile.exp(top - base), tile.exp(log - base)
        acc = acc * kept + added * tile.load(given, at=(part * queries, 0), shape=(here.m, here.d))
        top, total = most, total * kept + added
    return tile.cast(acc / total, q.dtype)
