"""BOCK: Bayesian optimisation with cylindrical kernels."""
