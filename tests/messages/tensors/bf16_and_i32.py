import numpy as np
import tessera as ts

ts.ones(3, ts.bf16) + ts.ones(3, ts.i32)
