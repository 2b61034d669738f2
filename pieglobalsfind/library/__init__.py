"""What Python programs use by `import pieglobalsfind`: ranks, owners of addresses, globals and stacks of a target.

It imports `session` and everything below; docs/library.md documents it.
"""
