import tessera as ts
from tessera import KTile, Out, Schedule, Tile, bf16, f32, i32, kernel, tile
from tessera.interpreters.sanitizers.checks import Checks, checking

x = ts.ones((20, 8))

@kernel
def normalise(x: KTile["N", "D", f32], y: Out[KTile["N", "D", f32]]):
    T = tile.context()
    tile.store(y, tile.load(x, at=(T.row_start, 0), shape=(T.m, 4)), at=(T.row_start, 0))
    Y = tile.load(y)
    tile.store(y, Y / tile.sum(Y, keepdims=True))

with checking(Checks.all()):
    normalise(x, ts.empty((20, 8)))
