"""What answers each kind of packet of the Remote Serial Protocol.

It imports `framing`, `session`, `control` and `ranks`.
"""
