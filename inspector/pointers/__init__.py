"""The pointer audit (`inspector pointers`): audit.py begins it."""
