import numpy as np
import tessera as ts
from tessera import Tensor, bf16, f32, jit

@jit
def pool(x, flag):
    return ts.cond(flag, lambda v: ts.mean(v, axis=0), lambda v: v, x)

pool(ts.zeros((5, 4)), ts.asarray(np.array(True)))
