import tessera as ts
from tessera import KTile, Out, Schedule, Tile, bf16, f32, i32, kernel, tile
from tessera.interpreters.sanitizers.checks import Checks, checking

x = ts.ones((20, 8))

@kernel
def f(x: KTile["N", "D", f32], y: Out["N", "D", f32]):
    tile.store(y, tile.load(x))
