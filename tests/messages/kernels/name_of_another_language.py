import tessera as ts
from tessera import kernel, tile

@kernel
def numbered(out):
    tile.store(out, tile.arange(0, 64))

numbered(ts.ones((64,)))
