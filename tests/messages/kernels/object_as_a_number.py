from tessera import kernel, tile
import tessera as ts

class Config:
    scale = 0.5

@kernel
def scaled(x, scale: float):
    return tile.load(x) * scale

scaled(ts.ones((20, 8)), Config())
