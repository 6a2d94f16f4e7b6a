"""Warp-specialized kernels for sm_90a: producers copy with TMA, consumers multiply with wgmma."""
