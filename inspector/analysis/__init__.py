"""What a report says, as values: globals, payload, waits, diagnoses.

It formats nothing for people.
"""
