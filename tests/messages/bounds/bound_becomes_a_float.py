import numpy as np

from tessera import kernel, tile

x, out = np.ones((20, 8), np.float32), np.zeros((20, 8), np.float32)
rows = np.array([3, 0, 7, 5])


@kernel
def f(x, rows, out):
    end = tile.item(rows, 0)
    for i in tile.range(end):
        end = end * 0.5
    tile.store(out, tile.zeros((4, 8)), at=(0, 0))

f[1](x, rows, out)
