"""Break points: exact roots, their order, and where an expression may fail to be analytic."""
