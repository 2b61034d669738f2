"""What LLDB asks and shows at each stop: the list of threads, and the selection that follows the stopped one.

It may import every other folder of this extension; only `extension` and the plugin import it.
"""
