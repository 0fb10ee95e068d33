"""Neural networks to train, prune and compress."""
