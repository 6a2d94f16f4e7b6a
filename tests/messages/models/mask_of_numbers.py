import numpy as np
import tessera as ts
from tessera import Tensor, bf16, f32, jit

@jit
def pick(mask, x):
    return ts.where(mask, x, 0.0)

pick(ts.ones((4,)), ts.ones((4,)))
