import tessera as ts


@ts.jit
def noisy(logits):
    return logits + ts.random.gumbel(None, logits.shape)


noisy(ts.ones((4,)))
