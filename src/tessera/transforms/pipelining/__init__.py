"""Software pipelining and warp specialization of tile programs."""
