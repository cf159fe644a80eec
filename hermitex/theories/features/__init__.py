"""Features after one step: the activation that the bulk smooths, the rows of the gradient, the equations of the spectrum."""
