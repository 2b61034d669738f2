"""The file that LLDB loads by its path, to show ranks as threads; `stops/thread_list.py` does the work.

It may import `stops` alone.
"""
