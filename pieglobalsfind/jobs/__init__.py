"""The processes of one job on this host or in a checkpoint.

If several processes have a record of a rank, it says which one is right. It shows nothing.
"""
