import tessera as ts
from tessera import KTile, Schedule, bf16, f32, i32, kernel, tile
from tessera.tile.language.intrinsics import INF
from tessera.interpreters.sanitizers.checks import Checks, checking

x = ts.ones((20, 8))

@kernel
def f(x: KTile["N", "D", f32], *, score):
    return score(tile.load(x))

f(x, score=lambda s: s + 1.0); f(x, score=lambda s: s * 2.0 + tile.zeros((3, 8)))
