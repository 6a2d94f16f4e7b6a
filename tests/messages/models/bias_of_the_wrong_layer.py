import numpy as np
import tessera as ts
from tessera import Tensor, bf16, f32, jit

@jit
def layer(x, params):
    hidden = x @ params["w"]
    return ts.gelu(hidden + params["b"])

layer(ts.zeros((4, 32)), {"w": ts.zeros((32, 128)), "b": ts.zeros((32,))})
