"""A linear function on a sphere."""
