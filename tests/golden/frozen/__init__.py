"""Questions with frozen answers: how they are stored, asked and compared."""
