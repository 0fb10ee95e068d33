"""BOCK: cylindrical kernels."""
