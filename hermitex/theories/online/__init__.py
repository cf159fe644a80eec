"""One-pass SGD: the flow of one overlap, of several, and how long it stays at the equator."""
