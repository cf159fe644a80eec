"""The Hermite calculus behind `hermite`: polynomials, coefficients, expansions."""
