"""Bins of coordinates that share a value, and that split where they matter."""
