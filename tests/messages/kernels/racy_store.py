import tessera as ts
from tessera import KTile, Schedule, bf16, f32, i32, kernel, tile
from tessera.tile.language.intrinsics import INF
from tessera.interpreters.sanitizers.checks import Checks, checking

x = ts.ones((20, 8))

@kernel
def f(x: KTile["N", "D", f32], total: KTile["D", f32]):
    i = tile.program_id(0)
    tile.store(total, tile.sum(tile.load(x, at=(i * 4, 0), shape=(4, 8)), 0), at=(0,))

with checking(Checks.all()):
    f[5](x, ts.zeros(8))
