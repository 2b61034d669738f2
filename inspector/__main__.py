"""`python -m` entry of the inspector: what `cli` does, and nothing else."""

from __future__ import annotations

import sys

from .cli import main

sys.exit(main())
