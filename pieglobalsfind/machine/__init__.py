"""What differs between processors: tables for each, chosen by a target's ELF machine.

`x86_64.py` describes registers, relocations and calls, `x86_64_remote.py` their order in a debugger's protocol, and
`x86_64_control.py` what stops a thread; likewise for other processors.
"""

from __future__ import annotations
