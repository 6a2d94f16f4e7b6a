import tessera as ts
from tessera import KTile, Schedule, bf16, f32, i32, kernel, tile
from tessera.tile.language.intrinsics import INF
from tessera.interpreters.sanitizers.checks import Checks, checking

x = ts.ones((20, 8))

@kernel
def f(x: KTile["N", "D", f32], out: KTile["M", "D", f32]):
    index = tile.iota((4,)) // 2
    tile.scatter(out, index, tile.load(x, at=(0, 0), shape=(4, 8)))

with checking(Checks.all()):
    f[1](x, ts.zeros((4, 8)))
