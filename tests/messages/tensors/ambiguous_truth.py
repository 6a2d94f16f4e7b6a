import numpy as np
import tessera as ts

if ts.asarray([1.0, 2.0]) > 0:
    pass
