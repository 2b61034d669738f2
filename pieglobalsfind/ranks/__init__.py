"""Questions to a `RankTable`: sets of ranks, whose an address is, where a variable is, what it is called.

It imports `decoders`, `dwarf` and `elf`; it walks no stack.
"""
