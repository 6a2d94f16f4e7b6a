"""The tile dialect: sequential programs over tiles."""
