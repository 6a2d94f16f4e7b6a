import numpy as np

from tessera import kernel, tile

x, out = np.ones((20, 8), np.float32), np.zeros((20, 8), np.float32)
weights = np.full(4, 0.5, np.float32)


@kernel
def f(x, weights, out):
    index = tile.load(weights, at=(0,), shape=(4,))
    tile.store(out, tile.gather(x, index, shape=(8,)), at=(0, 0))

f[1](x, weights, out)
