"""How results show themselves: formulas, tables, pictures, references. Knows no theory."""
