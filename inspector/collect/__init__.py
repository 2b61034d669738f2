"""A report of a whole job: its processes here, or collectors on each node under the site's own MPI launcher.

It imports `output`, `analysis` and what those may import.
"""
