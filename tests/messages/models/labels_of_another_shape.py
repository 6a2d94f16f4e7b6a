import tessera as ts


@ts.jit
def loss(x, weights, labels):
    logits = x @ weights
    return ts.cross_entropy(logits, labels)


loss(ts.ones((4, 7, 8)), ts.ones((8, 10)), ts.zeros((4, 10), dtype=ts.i64))
