"""EGP: elastic Gaussian process."""
