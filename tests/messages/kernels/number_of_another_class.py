from tessera import kernel, tile
import tessera as ts

class Ratio(float):
    pass

@kernel
def scaled(x, scale: float):
    return tile.load(x) * scale

scaled(ts.ones((20, 8)), Ratio(0.5))
