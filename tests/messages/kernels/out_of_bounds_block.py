import tessera as ts
from tessera import KTile, Schedule, bf16, f32, i32, kernel, tile
from tessera.tile.language.intrinsics import INF
from tessera.interpreters.sanitizers.checks import Checks, checking

x = ts.ones((20, 8))

@kernel
def f(x: KTile["N", "D", f32], out: KTile["N", "D", f32]):
    i = tile.program_id(0)
    tile.store(out, tile.load(x, at=(i * 16 + 100, 0), shape=(16, 8)), at=(i * 16, 0))

with checking(Checks.all()):
    f[2](x, ts.zeros((20, 8)))
