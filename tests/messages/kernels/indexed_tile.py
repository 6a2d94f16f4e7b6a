import tessera as ts
from tessera import KTile, Schedule, bf16, f32, i32, kernel, tile
from tessera.tile.language.intrinsics import INF
from tessera.interpreters.sanitizers.checks import Checks, checking

x = ts.ones((20, 8))

@kernel
def f(x: KTile["N", "D", f32]):
    y = tile.load(x)
    return y[0]

f(x)
