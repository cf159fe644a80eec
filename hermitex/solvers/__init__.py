"""Plain vectorised functions in, a `Solution` out: solvers know NumPy and nothing of SymPy.

The convention of every solver here: n unknowns at B parameter points, all points at once,

    residual(x, p) -> (n, B),   jacobian(x, p) -> (n, n, B),   step(x, p) -> (n, B),   x of shape (n, B),

where residual = x - rhs(x) (an implicit equation has a row of its own), step = rhs, and p is a dict whose values are
scalars or arrays with the points along their last axis. Each function lives in the module of its name:

    from hermitex.solvers.newton import newton
"""
