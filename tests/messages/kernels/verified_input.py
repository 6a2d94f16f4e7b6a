import tessera as ts
from tessera import Tile, f16, kernel, tile, verify

@verify.numerics(bounded=[-100, 100], inputs={"x": [-10, 10]})
@kernel
def square(x: Tile) -> Tile:
    return x * x

x = ts.ones((20, 4))
x[7, 2] = 12.5
square(x)
