import numpy as np
import tessera as ts

weights = np.ones(3, np.float32)
weights.flags.writeable = False
ts.asarray(weights)[0] = 2.0
