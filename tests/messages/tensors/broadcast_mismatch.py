import numpy as np
import tessera as ts

x, y = ts.ones((2, 3)), ts.ones((4, 3))
z = x * 2 + y
