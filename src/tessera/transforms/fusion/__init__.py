"""Graph to schedule to tile: operators are fused into regions, and regions become tile functions."""
