"""Convex losses: the equations of their fields, their pointwise minimum, their grids and their Newton iteration."""
