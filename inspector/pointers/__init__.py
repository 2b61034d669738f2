"""The pointer audit (`inspector pointers`): check.py begins it.

It imports `values` and `job`, and formats nothing.
"""
