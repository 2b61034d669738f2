"""What a command owes to its shell: exit status, signals, escaped text, files written in one step.

It imports `errors` alone and knows nothing of ranks or targets.
"""
