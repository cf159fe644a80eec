"""Bounds of the risk: as sums of squares, as formulas, least over a rate, over a plane of features."""
