import numpy as np

from tessera import kernel, knobs, tile

x, out = np.ones((20, 8), np.float32), np.zeros((20, 8), np.float32)
rows = np.array([3, 0, 7, 5])
weights = np.full(4, 0.5, np.float32)


@kernel
def f(x, rows, weights, out):
    scale = tile.item(weights, tile.item(rows, 2))
    tile.store(out, tile.load(x, at=(0, 0), shape=(4, 8)) * scale, at=(0, 0))

with knobs.checks.using("bounds"):
    f[1](x, rows, weights, out)
