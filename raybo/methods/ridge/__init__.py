"""Ridge functions of a few free directions."""
