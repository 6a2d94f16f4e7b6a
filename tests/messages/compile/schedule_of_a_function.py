# schedule of a function
import tessera as ts
from tessera.compile import to_graph_ir, to_schedule_ir


@ts.jit
def doubled(x):
    return x + x


to_schedule_ir(to_graph_ir(doubled, (ts.ones((4, 4)),)), {"block": (32, 32)})
