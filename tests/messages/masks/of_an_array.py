import numpy as np

from tessera import kernel, tile

x, out = np.ones((20, 8), np.float32), np.zeros((20, 8), np.float32)
flags = np.array([True, False, True, True])


@kernel
def f(x, flags, out):
    part = tile.load(x, at=(0, 0), shape=(4, 8))
    tile.store(out, part, at=(0, 0), mask=flags)

f[1](x, flags, out)
