import numpy as np
import tessera as ts
from tessera import Tensor, bf16, f32, jit

@jit
def append(cache, k):
    return ts.concat([cache, k], axis=1)

append(ts.zeros((2, 8, 100, 64)), ts.zeros((2, 8, 1, 64)))
