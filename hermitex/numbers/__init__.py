"""One integrator: averages over standard normals, to relative accuracy."""
