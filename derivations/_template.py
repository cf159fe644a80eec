r"""A derivation of your own: copy this file, change it, and run `hermitex check my_derivation.py`.

A derivation is a page of mathematics. Every `step` is an equality with the rule that gives it. It is proved anew
each time, or tested to 30 digits at random points; a wrong one is answered with a counter-example. Undefined
functions are part of the claim: what is proved with sigma = Function("sigma") holds for every sigma.
"""

from sympy import Function, sqrt

import hermitex as hx
from hermitex import Derivative, E, Result
from hermitex.symbols import c, kappa, r, z

sigma = Function("sigma")
u = r*kappa + sqrt(c)*z

page = Result(
    "The slope of a spiked feature",
    r"Given its projection $\kappa$ on the spike, a feature $\sigma(r\kappa + \sqrt{c}\,z)$ has the mean slope $#1$.",
    source="cui2024", place="Result 3.2",                # a key of `hermitex cite`; leave it out for your own work
    assumptions=[r"$z \sim \mathcal{N}(0, 1)$ and $\kappa$ are independent"],
)

page.notation({
    r: "the size of the spike",
    c: "the squared norm of a row beside it",
    kappa: "the projection of the input on the spike",
})
page.text(r"The best linear fit in $z$ has the coefficient $#1$, which integration by parts turns into a slope.",
          E(z*sigma(u), z))   # a term of the words, which must be part of a formula of the page
by_parts = page.step("Stein", E(z*sigma(u), z), sqrt(c)*E(Derivative(sigma)(u), z))
page.variant("the variance instead of its root", E(z*sigma(u), z), c*E(Derivative(sigma)(u), z),
             r"a factor $\sqrt{c}$ too many")
page.therefore(E(z*sigma(u), z)/sqrt(c), E(Derivative(sigma)(u), z), "The slope in the pre-activation:",
               by=[by_parts], package={"hx.mu(sigma, 1).node": hx.mu(sigma, 1).node})
page.not_shown("that the feature is equivalent to its linear part and noise; see `conditional_coefficients.py`.")
