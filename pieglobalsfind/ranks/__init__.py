"""Questions to a `RankTable`: sets of ranks, whose an address is, where a variable is, what it is called.

It walks no stack.
"""
