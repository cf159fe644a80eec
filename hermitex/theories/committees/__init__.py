"""Committees of neurons in numbers: averages of products, rates, plateaus."""
