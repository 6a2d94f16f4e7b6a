import numpy as np
import tessera as ts
from tessera import Tensor, bf16, f32, jit

@jit
def attention(x, w, *, heads):
    qkv = x @ w
    return ts.split_qkv(qkv, heads=heads)

attention(ts.zeros((2, 16, 60)), ts.zeros((60, 180)), heads=8)
