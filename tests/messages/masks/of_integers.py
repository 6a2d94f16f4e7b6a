import numpy as np

from tessera import i32, kernel, tile

x, out = np.ones((20, 8), np.float32), np.zeros((20, 8), np.float32)
rows = np.array([3, 0, 7, 5])


@kernel
def f(x, rows, out):
    part = tile.load(x, at=(0, 0), shape=(4, 8))
    tile.store(out, part, at=(0, 0), mask=(part > 0).to(i32))

f[1](x, rows, out)
