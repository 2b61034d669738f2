"""What Python programs use by `import pieglobalsfind`: ranks, owners of addresses, globals and stacks of a target.

docs/library.md documents it.
"""
