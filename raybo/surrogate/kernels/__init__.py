"""Covariance functions, one family per file."""
