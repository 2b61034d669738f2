"""What `inspector record` keeps of a job over a time: stretches of equal samples, sums by MPI call, and files of them.

It may import `terminal` only; it reads no target.
"""
