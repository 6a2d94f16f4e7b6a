import tessera as ts
from tessera import KTile, Out, Schedule, Tile, bf16, f32, i32, kernel, tile
from tessera.interpreters.sanitizers.checks import Checks, checking

x = ts.ones((20, 8))

@kernel
def accumulate(x: KTile["N", "D", f32], total: Out[KTile["N", "D", f32]]):
    tile.store(total, tile.load(total) + tile.load(x))

with checking(Checks.all()):
    accumulate(x, ts.empty((20, 8)))
