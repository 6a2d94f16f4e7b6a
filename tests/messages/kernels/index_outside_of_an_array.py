import tessera as ts
from tessera import KTile, Schedule, bf16, f32, i32, kernel, tile
from tessera.tile.language.intrinsics import INF
from tessera.interpreters.sanitizers.checks import Checks, checking

x = ts.ones((20, 8))

@kernel
def f(x: KTile["N", "D", f32], rows: KTile["M", i32], out: KTile["M", "D", f32]):
    index = tile.load(rows, at=(0,), shape=(4,))
    tile.store(out, tile.gather(x, index, shape=(8,)), at=(0, 0))

with checking(Checks.all()):
    f[1](x, ts.full(4, 20, i32), ts.zeros((4, 8)))
