"""Laws of labels and their second moments: densities, tables, sums, products, conditional sections."""
