import tessera as ts
from tessera import KTile, Schedule, bf16, f32, i32, kernel, tile
from tessera.tile.language.intrinsics import INF
from tessera.interpreters.sanitizers.checks import Checks, checking

x = ts.ones((20, 8))

@kernel
def f(x: KTile["N", "D", f32], w: KTile["D", "F", f32]):
    T = tile.context()
    a = tile.load(x, rows=T.m, cols=T.d)
    b = tile.load(w, at=(0, 0), shape=(16, 32))
    return tile.dot(a, b)

f(x, ts.ones((8, 32)))
