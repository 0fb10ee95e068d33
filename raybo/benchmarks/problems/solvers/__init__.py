"""Solvers to configure."""
