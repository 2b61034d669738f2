"""What `inspector record` keeps of a job over a time: stretches of equal samples, sums by MPI call, and files of them.

It reads no target.
"""
