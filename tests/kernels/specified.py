"""The specification's attention kernel, letter by letter; KVCache is any object with view attributes."""

from tessera import KTile, accum, bf16, f32, kernel, tile
from tessera.tile.language.intrinsics import INF, dropout_in_kernel


class KVCache:
    def __init__(self, K, V):
        self.K, self.V = K, V


@kernel.autotune(space=dict(BM=[64,128], BN=[64,96,128], BD=[64,128],
                            warps=[4,8], stages=[2,3], vector=[4,8]),
                 metric="latency_ms", budget_ms=180, cache="~/.sched")
def flash_attention(q: KTile["B*H","S","D_h", bf16 @accum(f32)], cache: KVCache, *, dropout: float, causal: bool):
    T  = tile.context()
    Qb = tile.load(q, rows=T.m, cols=T.d, vector=T.vector, prefetch=2)
    acc = tile.zeros((T.m,T.d), f32); m = tile.full((T.m,), -INF); l = tile.zeros((T.m,), f32)
    for nblk in tile.range_n(cache.K.shape, T.n, prefetch=2):
        Kb = tile.load(cache.K, nblk, cols=T.d, vector=T.vector)
        Vb = tile.load(cache.V, nblk, cols=T.d, vector=T.vector)
        S  = tile.dot(Qb, tile.transpose(Kb)) * tile.rsqrt(float(T.d))
        if causal: tile.mask_causal(S, tile.row_index(), tile.col_index(nblk))
        P, m_c, l_c = tile.softmax_online(S)
        if dropout: P = dropout_in_kernel(P, p=dropout)
        acc, m, l = tile.softmax_accumulate(acc, m, l, P, Vb, m_c, l_c)
    return tile.cast(acc / l[:,None], bf16)
