"""Local search: a model in a trust region around the best point."""
