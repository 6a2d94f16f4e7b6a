import tessera as ts
from tessera import KTile, Schedule, bf16, f32, i32, kernel, tile
from tessera.tile.language.intrinsics import INF
from tessera.interpreters.sanitizers.checks import Checks, checking

x = ts.ones((20, 8))

@kernel.schedule(Schedule(block=(4, 16)))
def softmax(x: KTile["N", "D", f32]):
    T = tile.context()
    y = tile.load(x, rows=T.m, cols=T.n)
    e = tile.exp(y - tile.max(y, 1)[:, None])
    return tile.sum(e, 1)

with checking(Checks.all()):
    softmax(ts.full((4, 10), -1.0))
