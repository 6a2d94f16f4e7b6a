"""Software pipelining and warp specialization of kernels."""
