"""The processes of one job on this host or in a checkpoint.

It imports `decoders` and `targets`, and decides nothing about ranks.
"""
