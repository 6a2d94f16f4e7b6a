import tessera as ts
from tessera import Tile, f16, kernel, tile, verify

@kernel
def score(q: Tile, k: Tile) -> Tile:
    return tile.dot(q, k.T)

score(ts.ones((20, 8)), 3.0)
