"""REMBO: random embeddings."""
