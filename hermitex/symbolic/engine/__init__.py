"""The exact engine behind `integrals`: canonical terms, Stein's recursions, several variables."""
