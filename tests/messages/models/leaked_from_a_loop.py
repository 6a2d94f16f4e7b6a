import numpy as np
import tessera as ts
from tessera import Tensor, bf16, f32, jit

@jit
def last(x):
    seen = []

    def step(total, row):
        seen.append(row)
        return total + row, None

    ts.scan(step, ts.zeros((4,)), x)
    return seen[-1]

last(ts.ones((3, 4)))
