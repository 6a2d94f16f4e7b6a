import numpy as np
import tessera as ts

ts.asarray([[1, 2], [3]])
