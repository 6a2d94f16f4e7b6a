import tessera as ts
from tessera import KTile, f32, kernel, tile

x = ts.ones((3, 20, 8))

@kernel
def f(x: KTile["B", "N", "D", f32]):
    a = tile.load(x[0], at=(0, 0), shape=(32, 8))
    return tile.dot(a, tile.sum(a, axis=0))

f(x)
