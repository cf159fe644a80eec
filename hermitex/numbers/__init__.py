"""One integrator: averages over standard normals, to relative accuracy.

average(f, z, digits=15) -> Average(value, error, size, proved), `.digits`: E f(z) of one variable
integral(f, x, low, high, digits=15) -> Average: int f dx, over an interval or a half line
coefficients(f, z, order) -> Coefficients(values, errors): E f h_k for all k <= order <= 500 at once
Program(expr, variables): an expression as a straight-line program, on arrays, balls and mpmath numbers

A refusal is a typed error: Divergent (the average does not exist), NotConverged (`.solution` is the value and the
error that were reached), NoClosedForm (a symbol without a value, a function without a numeric rule).
"""
