import tessera as ts
from tessera import KTile, Out, Schedule, Tile, bf16, f32, i32, kernel, tile
from tessera.interpreters.sanitizers.checks import Checks, checking

x = ts.ones((20, 8))

@kernel
def total(x: KTile["N", "D", f32], y: Out):
    tile.atomic_add(y, tile.sum(tile.load(x), 0), at=(0,))

with checking(Checks.all()):
    total(x, ts.empty(8))
