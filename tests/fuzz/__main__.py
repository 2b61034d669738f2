"""`make fuzz`: run every decoder, or those that are named, under Atheris (libFuzzer) for FUZZ_SECONDS altogether.

An input that crashes, takes more than 2 s of processor time or 500 MB, or has a wrong answer, ends the decoder's run
with status 1. It is kept in tests/fuzz/kept/DECODER, where `make test` replays it from then on; what libFuzzer has
found worth keeping besides lies in build/fuzz.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

from tests.fuzz.decoder import KEPT, NAMES

CORPUS = Path("build/fuzz")
RUNS = re.compile(rb"Done (\d+) in|stat::number_of_executed_units: (\d+)")


def fuzz(name: str, seconds: int) -> bool:
    """Whether nothing was found."""
    command = [sys.executable, "-m", "tests.fuzz.decoder", name, str(CORPUS / name), str(seconds)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    (CORPUS / f"{name}.log").write_bytes(done.stdout)
    counts = [int(first or second) for first, second in RUNS.findall(done.stdout)]
    print(f"{name:11} {max(counts, default=0):>10,} inputs, {'nothing found' if not done.returncode else 'FOUND:'}")
    if done.returncode:
        print(done.stdout.decode(errors="replace")[-4000:])
    return not done.returncode


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.fuzz", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seconds", type=int, default=60, help="of all decoders together (60)")
    parser.add_argument("decoders", nargs="*", metavar="DECODER", help=f"of {', '.join(NAMES)}; all by default")
    options = parser.parse_args()
    unknown = [name for name in options.decoders if name not in NAMES]
    if unknown:
        parser.error(f"no such decoder: {', '.join(unknown)}")
    CORPUS.mkdir(parents=True, exist_ok=True)
    names = options.decoders or NAMES
    results = [fuzz(name, max(options.seconds // len(names), 1)) for name in names]
    if not all(results):
        print(f"Inputs are kept in {KEPT}; mend the decoder, then commit them: make test replays them.")
    return 0 if all(results) else 1


sys.exit(main())
