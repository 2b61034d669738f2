"""How busy ranks and processing elements are, what ranks send to one another, and where ranks could run better.

It may import `values`, `job` and what stands below; it shows nothing.
"""
