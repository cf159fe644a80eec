"""Digits and balls: formulas as straight-line programs over numbers of any kind, and rigorous integrals."""
