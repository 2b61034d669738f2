"""SimGrid's SMPI, read from outside: actors, their contexts, the ranks that they are, and each rank's own globals.

No offset of a SimGrid class is written down here. Classes are recognized by their run-time type information (Itanium
C++ ABI, 2.9.5), and members by what they must hold. See docs/smpi.md.
"""
