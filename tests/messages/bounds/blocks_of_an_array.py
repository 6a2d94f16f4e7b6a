import numpy as np

from tessera import kernel, tile

x, out = np.ones((20, 8), np.float32), np.zeros((20, 8), np.float32)
rows = np.array([3, 0, 7, 5])


@kernel
def f(x, rows, out):
    for block in tile.range_n(x, 4):
        tile.store(out, tile.load(x, block), block)

f[1](x, rows, out)
