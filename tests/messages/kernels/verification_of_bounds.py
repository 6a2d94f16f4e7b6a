import tessera as ts
from tessera import Tile, f16, kernel, tile, verify

@verify.numerics(bounded=[100, -100])
@kernel
def square(x: Tile) -> Tile:
    return x * x
