"""The compiler as the bench sees it: stages, counts and profiles."""
