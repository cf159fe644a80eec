"""t = a*b; q = t*c  ->  q = a*b*c: temporaries that are read once go where they are read, so that the source reads well.

A temporary stays where its value is shared, where the line would grow long, and where it varies along fewer axes than
what reads it: the product of two numbers is not taken again at every node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from sympy import Expr, Symbol, preorder_traversal

from hermitex.kernels.lowered import Statement
from hermitex.symbolic.formula_size import operations


def inline_single_reads(statements: Sequence[Statement], results: Mapping[str, Expr], *, loose: AbstractSet[Symbol],
         reach: Mapping[Symbol, frozenset[Symbol]]) -> tuple[list[Statement], dict[str, Expr]]:
    """The same statements and results with temporaries put in where they are read once.

    Parameters
    ----------
    loose : the temporaries that may go
    reach : the axes along which each symbol varies
    """
    exprs = [*(s.expr for s in statements), *results.values()]
    reads = Counter(v for e in exprs for v in preorder_traversal(e) if isinstance(v, Symbol))
    bodies = {s.target: s.expr for s in statements if s.target in loose and not s.axes}
    gone: set[Symbol] = set()

    def along(e: Expr) -> frozenset[Symbol]:
        return frozenset().union(*(reach.get(v, frozenset()) for v in e.free_symbols))

    longest = 14  # operations on a line

    def written(e: Expr) -> Expr:
        swap = {}
        for v in sorted(e.free_symbols & bodies.keys(), key=str):
            body = bodies[v]
            constant = not body.free_symbols and operations(body) <= 3
            fits = reads[v] == 1 and along(body) == along(e) and operations(body) + operations(e) <= longest
            if constant or fits:
                swap[v] = body
        gone.update(swap)
        return e.xreplace(swap) if swap else e

    kept = []
    for s in statements:
        s = replace(s, expr=written(s.expr))
        if s.target in bodies:
            bodies[s.target] = s.expr
        kept.append(s)
    finished = {label: written(e) for label, e in results.items()}
    still = {v for e in (*(s.expr for s in kept if s.target not in gone), *finished.values()) for v in e.free_symbols}
    return [s for s in kept if s.target not in gone or s.target in still], finished
