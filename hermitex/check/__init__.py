"""lhs = rhs? Numbers, proofs and agreement on a printed domain, with the rules of the Gaussian calculus.

`claim` reads a claim and judges it; `values` and `sample_points` are its numbers, `proofs`, `normal` and `rules`
its algebra.
"""
