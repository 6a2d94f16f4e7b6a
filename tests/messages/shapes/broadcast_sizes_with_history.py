import numpy as np
from tessera.dtypes.types import *
from tessera.errors import caller_span
from tessera.shapes import *
from tessera.shapes import rules

x = ShapeHistory("argument 'x'", (8, 16), span=caller_span())
x = x.step("transpose", rules.transpose(x.after, (1, 0)), caller_span())
rules.broadcast(x.after, (16,), where="add", histories=[x])
