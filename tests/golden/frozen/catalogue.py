"""All parts, by name."""

from __future__ import annotations

from . import averages, claims, commands, documentation, exponents, expressions, notebooks, pages, references, theories

PARTS = {part.name: part for part in (documentation.PART, notebooks.PART, pages.PART, *exponents.PARTS, claims.PART, averages.PART,
                                      expressions.PART, theories.PART, references.PART, commands.PART)}
