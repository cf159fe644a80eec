"""The difficulty of a target for an algorithm: the parts of ``hermitex.exponents(g)``, which begins at `report.exponents`.

The way from a target to its certificates, each step with the file that makes it::

    a text, a channel, a budget                                        report
        |   functions that agree almost everywhere; what is constant   labels.almost_everywhere, labels.label_levels
        |   the directions that matter, averages written over them     directions.relevant
        v
    a target of one direction has one variable, and its leaps are the information and the generative exponent
        |
        |   parts take turns of processor time, cheap ways first;      clock: Part, take_turns
        |   what was given up once is tried again for longer           (symbolic.budget: patience; symbolic.deadline: attempt)
        |
        +-- E[Y|z]: is it in L2?                                       mean
        |
        +-- information exponent and leap                              leap
        |     C_k^U(u) = E[g He_k(P z) | u], U <- U + what it          directions.staircase (Climb), directions.regression,
        |     charges; and by coordinates: the same climb, rounded up  (CoordinateClimb)
        |
        +-- generative exponent and leap                               generative_leap
        |     what the label reveals, one normal form                  label
        |     Lambda_k(U): label maps against symmetries               labels.families, labels.conditional_tensors
        |     what is proved of E[Y|z] is used, not proved again       evidence
        |
        +-- alpha_c, stage by stage of that staircase                  thresholds
              the law of the label by a table of mechanisms            laws.mechanisms

What is asked of an answer: the best label map of a spectral estimator (`label_map`, from `observed_law`, `label_formula`,
`label_table`), and what stays unlearned after some stages (`unlearned`).

A statement `this coefficient is zero` or `is not` is a `certificate.Certificate`. It is decided by the first of these::

    zero      symmetry, parity                                         directions.symmetry, directions.invariant_tensors
              a part of a coordinate that the label does not see       labels.hidden_variables
              u is a function of an antiderivative of He_k phi         labels.label_branches
              exact integrals and exact algebra                        symbolic.integrals, symbolic.zero
    not zero  the label rises with a variable                          labels.monotone_labels
              independent factors, each exact or in a ball             labels.mean_signs, symbolic.digits.enclosure
              entries of a tensor in intervals, then the combination   labels.moments, directions.intervals
              ranges over boxes, for whatever has no rule              labels.bounded_moments, labels.box_ranges
    neither   undetermined, with the bound that was reached

and goes back through `report` into a `result.Exponents`, which `explain` tells in words.
"""
