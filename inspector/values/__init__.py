"""From bytes of variables to text, by their types.

It imports `job` and `pieglobalsfind`.
"""
