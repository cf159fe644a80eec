"""State evolution: the outputs of a label, the fixed points of the overlaps and where they change."""
