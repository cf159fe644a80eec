"""F_U(M) = E_u[E[G_U M G_U | u]] for a user's channel P(y|z): the couplings of what is hidden, averaged over what is known."""

from __future__ import annotations

from collections.abc import Sequence

from sympy import Symbol

from hermitex.errors import NoClosedForm
from hermitex.exponents.channels import Channel
from hermitex.exponents.laws.drawn import Drawn
from hermitex.exponents.laws.known import even_part, mirror, over_known
from hermitex.exponents.laws.linearised import Second, largest
from hermitex.exponents.laws.value import Value, measured

_MOST = 2


def later_stage(channel: Channel, given: Sequence[Symbol], hidden: Sequence[Symbol]) -> Value:
    """alpha_c of the hidden variables once the given ones are perfectly known; P(y|z) is written over both.

    Raises
    ------
    NoClosedForm : more than two known directions enter P(y|z), or nothing of the hidden ones is seen.
    """
    known = [u for u in given if channel.p.has(u)]
    if len(known) > _MOST:
        raise NoClosedForm("alpha_c", f"an average over {len(known)} known directions is not taken", "Give a simpler channel")
    drawn = Drawn(channel, known, hidden)
    found = _averaged(drawn, channel, (known, hidden), ())
    inverse, _ = largest(found.couplings, list(range(len(hidden))))
    if not inverse > 0:
        raise NoClosedForm("alpha_c", "the conditional second moments came out as zero", "Give the channel in another form")
    return measured(inverse, len(hidden) * found.error)


def _averaged(drawn: Drawn, channel: Channel, spaces: tuple[Sequence[Symbol], Sequence[Symbol]], at: tuple[float, ...]) -> Second:
    """The average over the known variables that are left, one inside the other."""
    known, hidden = spaces
    if len(at) == len(known):
        return drawn.second(at)
    signs = mirror(channel.p, known, hidden, len(at))
    if signs is None:
        return over_known(lambda u: _averaged(drawn, channel, spaces, (*at, u)), False)[0]
    return over_known(lambda u: even_part(_averaged(drawn, channel, spaces, (*at, u)), signs), True)[0]
