import tessera as ts
from tessera import KTile, Schedule, f32, kernel, tile

x = ts.ones((20, 80))

@kernel.autotune(space={"BM": [16, 32], "BD": [32, 64]})
def softmax(x: KTile["N", "D", f32]):
    weights = tile.exp(tile.load(x))
    return weights / tile.sum(weights, keepdims=True)

softmax(x)
