import tessera as ts
from tessera import Tile, f16, kernel, tile, verify

@kernel
def scaled(x: Tile, factor: Tile) -> Tile:
    return x * factor

scaled(ts.ones((20, 8)), ts.ones(()))
