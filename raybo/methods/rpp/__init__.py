"""RPP: projected-additive models."""
