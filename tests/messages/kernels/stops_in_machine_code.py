import tessera as ts
from tessera import kernel, knobs, tile

x = ts.ones((20, 8))

@kernel
def looked_at(x):
    y = tile.load(x)
    tile.debug_print("y", y)
    tile.breakpoint(y)
    return y

with knobs.backend.using("cpu"):
    looked_at(x)
