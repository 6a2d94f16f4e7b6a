# sizes of a result
import tessera as ts
from tessera.compile import to_graph_ir


@ts.kernel
def doubled(x, out: ts.Out):
    ts.tile.store(out, ts.tile.load(x) * 2.0)


to_graph_ir(doubled[1], (ts.ones((4, 4)), ts.ones((4, 4))))
