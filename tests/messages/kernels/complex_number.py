from tessera import kernel, tile
import tessera as ts

@kernel
def scaled(x, scale: float):
    return tile.load(x) * scale

scaled(ts.ones((20, 8)), 1 + 2j)
