"""A report of a whole job: its processes here, or collectors on each node under the site's own MPI launcher."""
