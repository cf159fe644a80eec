"""Calls of the lower floors of `symbolic` to the higher ones: they call these hooks, and import nothing above themselves.

A node E(...) knows its body and its law; its derivative, its exact value and its digits are found on other floors, and so
is the meaning of a text. `hermitex.symbolic` fills the hooks before any of its modules is loaded, each with a function
that imports its floor when it is first called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

parse: Callable[..., Any]           # text -> expression
formula: Callable[[Any], Any]       # text in z and the package's letters, function, or expression -> expression, unevaluated
expression: Callable[[Any], Any]    # text, number, function or expression -> expression in the house's symbols
differentiate: Callable[[Any, Any], Any]   # (node, symbol) -> its derivative, under the average
integrate: Callable[..., Any]       # (node, deep=) -> the exact value, or the node
reason: Callable[[Any], str]        # node -> why it has no exact value, "" if it has one
evaluate: Callable[[Any, int], Any]  # (node, bits) -> a number of SymPy
total: Callable[[Any, int], Any]    # (sum over a countable law, digits) -> its value, or None
conditional: Callable[..., Any]      # (expression, variables, condition, covariances) -> E[expression | condition]
measure: Callable[[Any], tuple[Any, Any]]  # expression -> (its value to 15 digits where it has them, the error)
normal_form: Callable[[Any], Any]   # expression -> the same over canonical nodes
numeric: Callable[[Any, Any], Any]    # (expression, variables) -> a function of mpmath's numbers
