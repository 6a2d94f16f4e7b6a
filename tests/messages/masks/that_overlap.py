import numpy as np

from tessera import kernel, tile
from tessera.interpreters.sanitizers.checks import Checks, checking

x, out = np.ones((20, 8), np.float32), np.zeros((20, 8), np.float32)
rows = np.array([3, 0, 7, 5])


@kernel
def f(x, rows, out):
    part = tile.load(x, at=(0, 0), shape=(4, 8))
    there = tile.iota((4, 1)) < tile.item(rows, 0)
    tile.store(out, part, at=(tile.program_id(0) * 2, 0), mask=there)

with checking(Checks.all()):
    f[2](x, rows, out)
