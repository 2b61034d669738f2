"""The values of expressions in many ranks at once."""
