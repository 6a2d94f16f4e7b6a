import tessera as ts
from tessera import KTile, Schedule, bf16, f32, i4, i8, i32, kernel, tile, u4, u8
from tessera.tile.language.intrinsics import INF
from tessera.interpreters.sanitizers.checks import Checks, checking

x = ts.zeros((20, 7), i32)

@kernel
def f(x: KTile["N", "D", i32]):
    y = tile.unpack(tile.load(x), i4)
    return y

f(x)
