"""Add-GP-UCB: additive models."""
