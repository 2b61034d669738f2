"""What a report says, as values: globals, payload, waits, diagnoses.

It imports `values`, `pointers` and `job`, and formats nothing for people.
"""
