"""The meaning of each level's ops: graph, schedule, tile and pipe."""
