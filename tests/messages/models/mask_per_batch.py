import numpy as np
import tessera as ts
from tessera import Tensor, bf16, f32, jit

@jit
def masked(scores, mask):
    return ts.where(mask, scores, -1e9)

masked(ts.zeros((2, 4, 8, 8)), ts.ones((2, 8), dtype=ts.bool))
