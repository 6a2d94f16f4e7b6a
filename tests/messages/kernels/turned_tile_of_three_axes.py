import tessera as ts
from tessera import KTile, f32, kernel, tile

x = ts.ones((3, 20, 8))

@kernel
def f(x: KTile["B", "N", "D", f32], y: KTile["B", "N", "N", f32]):
    a = tile.load(x, at=(0, 0, 0), shape=(4, 32, 8))
    tile.store(y, tile.dot(a, a.T), at=(0, 0, 0))

f[1](x, ts.ones((3, 20, 20)))
