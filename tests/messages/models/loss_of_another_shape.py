import tessera as ts


@ts.jit
def loss(x, weights, targets):
    scores = x @ weights
    return ts.l1_loss(scores, targets)


loss(ts.ones((4, 8)), ts.ones((8, 1)), ts.zeros((4,)))
