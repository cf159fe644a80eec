"""Text and trees: what a user's words may mean, and how an expression is written down."""
