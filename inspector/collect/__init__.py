"""A report of all nodes under the site's own MPI launcher: collectors and the processes that they watch.

It imports `commands` and what that may import.
"""
