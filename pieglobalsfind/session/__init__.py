"""A target between two stops: everything that is made from its rank table once and kept until it runs on.

It imports `mpi` and everything below; debuggers and the inspector start from it.
"""
