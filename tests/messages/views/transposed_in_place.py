import tessera as ts
from tessera import kernel, tile

@kernel
def exchanged(x, out):
    tile.store(out, tile.load(x.T))

exchanged(ts.ones((20, 8)), ts.ones((8, 20)))
