import tessera as ts
from tessera import kernel, tile

@kernel
def folded(x, out):
    tile.store(out, tile.load(x).sum())

folded(ts.ones((20, 8)), ts.ones((20,)))
