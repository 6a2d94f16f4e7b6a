import tessera as ts
from tessera import Tile, f16, kernel, tile, verify

@verify.numerics(stable=True, bounded=[-100, 100])
@kernel.auto
def attention_score(q: Tile, k: Tile) -> Tile:
    scores = tile.dot(q, k.T) / 4.0
    return scores

q = ts.ones((70, 16))
q[67, 3] = 400.0
attention_score(q, ts.ones((5, 16)))
