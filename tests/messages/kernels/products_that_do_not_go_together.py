import tessera as ts
from tessera import KTile, f32, kernel, tile

x = ts.ones((3, 20, 8))

@kernel
def f(x: KTile["B", "N", "D", f32], w: KTile["C", "D", "F", f32], y: KTile["B", "N", "F", f32]):
    a = tile.load(x, at=(0, 0, 0), shape=(4, 32, 8))
    b = tile.load(w, at=(0, 0, 0), shape=(2, 8, 16))
    tile.store(y, tile.dot(a, b), at=(0, 0, 0))

f[1](x, ts.ones((2, 8, 16)), ts.ones((3, 20, 16)))
