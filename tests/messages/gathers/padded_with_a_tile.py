import numpy as np

from tessera import kernel, tile

x, out = np.ones((20, 8), np.float32), np.zeros((20, 8), np.float32)
rows = np.array([3, 0, 7, 5])


@kernel
def f(x, rows, out):
    index = tile.load(rows, at=(0,), shape=(4,))
    tile.store(out, tile.gather(x, index, shape=(8,), pad=tile.zeros((4, 8))), at=(0, 0))

f[1](x, rows, out)
