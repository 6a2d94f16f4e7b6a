import tessera as ts


@ts.jit
def histogram_of(tokens):
    return ts.bincount(tokens)


histogram_of(ts.asarray([1, 2, 2]))
