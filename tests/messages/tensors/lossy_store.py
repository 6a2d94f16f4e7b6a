import numpy as np
import tessera as ts

x = ts.zeros(3, ts.bf16)
x[0] = ts.asarray(1 / 3)
