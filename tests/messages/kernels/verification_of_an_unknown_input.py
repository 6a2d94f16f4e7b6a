import tessera as ts
from tessera import Tile, f16, kernel, tile, verify

@verify.numerics(inputs={"y": [-10, 10]})
@kernel
def square(x: Tile) -> Tile:
    return x * x
