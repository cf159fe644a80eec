"""Growth at infinity and next to singular points, rounded outwards: what makes a tail a theorem."""
