"""The tile dialect: sequential functions over tiles."""
