"""Bayesian optimisation with one Gaussian process."""
