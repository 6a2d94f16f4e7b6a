import tessera as ts


@ts.jit
def gated(x, weights):
    return ts.glu(x @ weights)


gated(ts.ones((4, 8)), ts.ones((8, 7)))
