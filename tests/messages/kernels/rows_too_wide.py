import tessera as ts
from tessera import KTile, Schedule, f32, kernel, tile

x = ts.ones((20, 80))

@kernel.schedule(Schedule(block=(16, 16), d=64))
def scaled(x: KTile["N", "D", f32]):
    T = tile.context()
    return tile.load(x, cols=T.d) * tile.rsqrt(float(T.d))

scaled(x)
