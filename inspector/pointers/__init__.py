"""The pointer audit (`inspector pointers`): check.py begins it.

It formats nothing.
"""
