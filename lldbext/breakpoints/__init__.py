"""Users' breakpoints and our own: hit in every rank, copied into none.

It imports `selection` and what that may import.
"""
