import numpy as np
import tessera as ts
from tessera import Tensor, bf16, f32, jit

@jit
def block(x):
    pooled = ts.mean(x, axis=1)
    return ts.residual(x, pooled)

block(ts.zeros((4, 16, 32)))
