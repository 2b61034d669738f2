"""How busy ranks and processing elements are, what ranks send to one another, and where ranks could run better.

It shows nothing.
"""
