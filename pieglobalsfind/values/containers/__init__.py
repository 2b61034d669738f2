"""The values of C++'s containers, from their memory and debug information, in the words of GDB's own printers.

`recognize` says which family a type is of; a module for each family reads its parts. Counts, links and addresses are
the target's: each is checked, and bounded by `bounded_contents`.
"""
