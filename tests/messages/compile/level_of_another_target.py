# level of another target
import tessera as ts
from tessera.compile import to_graph_ir


@ts.kernel
def copied(x):
    return ts.tile.load(x)


to_graph_ir(copied, (ts.ones((4, 4)),), options={"target": "cuda", "level": "avx2"})
