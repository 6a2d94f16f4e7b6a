"""The gated delta rule in chunks: the state forgets by alpha, and is corrected towards each value by beta.

state = alpha · (state - beta · k kᵀ state) + beta · k vᵀ. q, k, v are [H, S, D], alphas and betas [H, S].
"""

from __future__ import annotations

from typing import Any

from tessera import f32, kernel, tile


@kernel
def gated_delta_rule(q: Any, k: Any, v: Any, alphas: Any, betas: Any, out: Any, *, c: int, d: int):
    h, state = tile.program_id(0), tile.zeros((d, d))
    row, column = tile.iota((c, 1), 0), tile.iota((1, c), 1)
    for at in tile.range(0, q.shape[1], c):
        query, key, value = (tile.load(one[h], at=(at, 0), shape=(c, d)).to(f32) for one in (q, k, v))
        beta = tile.load(betas[h], at=(at,), shape=(c,))[:, None]
        fade = tile.cumsum(tile.log(tile.load(alphas[h], at=(at,), shape=(c,), pad=1.0)))
        between = tile.where(row >= column, tile.exp(tile.minimum(fade[:, None] - fade[None], 0.0)), 0.0)
        # Corrections of earlier tokens of the chunk: (1 + A)⁻¹, where A has nothing on its diagonal and above it.
        power = -tile.where(row > column, tile.dot(key, key.T) * between, 0.0) * beta
        inverse, span = tile.where(row == column, 1.0, power), 1
        while span < c:
            power, span = tile.dot(power, power), span * 2
            inverse = inverse + tile.dot(power, inverse)
        gone = tile.exp(fade)[:, None]
        update = tile.dot(inverse, beta * (value - gone * tile.dot(key, state)))
        seen = gone * tile.dot(query, state) + tile.dot(tile.dot(query, key.T) * between, update)
        tile.store(out[h], tile.cast(seen, out.dtype), at=(at, 0))
        last = tile.sum(tile.where(tile.iota(c) == c - 1, fade, 0.0))
        state = tile.exp(last) * state + tile.dot((key * tile.exp(last - fade)[:, None]).T, update)


def run(q: Any, k: Any, v: Any, alphas: Any, betas: Any, out: Any, c: int = 16) -> None:
    """Fills `out`."""
    gated_delta_rule[q.shape[0]](q, k, v, alphas, betas, out, c=c, d=q.shape[2])
