import numpy as np

from tessera import kernel, tile

x, out = np.ones((20, 8), np.float32), np.zeros((20, 8), np.float32)
flags = np.array([True, False, True, True])


@kernel
def f(x, flags, out):
    index = tile.iota(4)
    tile.scatter_add(flags, index, index > 2)

f[1](x, flags, out)
