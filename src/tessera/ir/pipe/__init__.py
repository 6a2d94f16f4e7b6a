"""The pipe dialect: software pipelining and warp specialization, before layouts are chosen."""
