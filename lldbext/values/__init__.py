"""The values of variables in many ranks at once."""
