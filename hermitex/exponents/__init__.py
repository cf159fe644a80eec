"""What a target asks of an algorithm: ``hermitex.exponents(g)`` is `report.exponents`; this folder holds its parts."""
