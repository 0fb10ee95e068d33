"""Surrogate models: exact Gaussian processes and their kernels."""
