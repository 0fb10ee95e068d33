"""Proposals, computed before workers need them."""
