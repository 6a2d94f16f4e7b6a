import tessera as ts
from tessera import KTile, Schedule, bf16, f32, i32, kernel, tile
from tessera.tile.language.intrinsics import INF
from tessera.interpreters.sanitizers.checks import Checks, checking

x = ts.ones((20, 8))

@kernel
def f(x: KTile["N", "D", f32], n: int):
    i = tile.program_id(0)
    far = n * 4611686018427387904
    tile.store(x, tile.zeros((4, 8)), at=(far, 0))

with checking(Checks.all()):
    f[1](x, 4)
