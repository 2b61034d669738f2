"""What the commands write to: text made harmless, widths and colours, progress, a terminal given back.

It imports nothing of the inspector's, and may be imported by all of it.
"""
