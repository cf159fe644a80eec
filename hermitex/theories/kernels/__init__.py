"""Kernels of inner products: their formulas, their spectra, and what ridge regression learns with them."""
