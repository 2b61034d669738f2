"""A target between two stops: everything that is made from its rank table once and kept until it runs on.

Debuggers and the inspector start from it.
"""
