import numpy as np
import tessera as ts
from tessera import Tensor, bf16, f32, jit

@jit
def step(x):
    if ts.mean(x) > 0.0:
        return x
    return -x

step(ts.ones((4,)))
