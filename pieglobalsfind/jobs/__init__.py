"""The processes of one job on this host or in a checkpoint.

It stands beside `session`, imports `decoders` and `targets`, and decides nothing about ranks.
"""
