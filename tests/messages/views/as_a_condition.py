import numpy as np

from tessera import kernel, tile

x, out = np.ones((20, 8), np.float32), np.zeros((20, 8), np.float32)
flags = np.array([True, False, True, True])


@kernel
def f(x, flags, out):
    if flags[0]:
        tile.store(out, tile.load(x, at=(0, 0), shape=(1, 8)), at=(0, 0))

f[1](x, flags, out)
