import tessera as ts
from tessera import KTile, Schedule, bf16, f32, i32, kernel, tile
from tessera.tile.language.intrinsics import INF
from tessera.interpreters.sanitizers.checks import Checks, checking

x = ts.ones((20, 8))

@kernel
def f(x: KTile["N", "D", f32], rows: KTile["M", i32]):
    y = tile.load(x, at=(tile.load(rows, at=(0,), shape=(4,)), 0), shape=(4, 8))
    return y

f(x, ts.zeros(4, i32))
