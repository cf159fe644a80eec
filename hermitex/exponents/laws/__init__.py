"""The law of a label and 1/alpha_c from it.

mechanisms (the table, in the order in which it is tried) -> the law at nothing known (noisy: blocks, strips, points)
or at each u that is known (conditional: sections, strips, blocks, points) -> its couplings and their eigenvalue (linearised).
Arrays of densities have the shape (indices, labels): a row for each He_a, |a| <= 2, a column for each label.
"""
