"""The documents name what is there."""
