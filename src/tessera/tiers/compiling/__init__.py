"""Background compilation: the queue of requests, and the processes that compile them."""
