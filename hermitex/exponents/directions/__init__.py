"""Subspaces of directions: what a target depends on, its symmetries, and the staircase through them."""
