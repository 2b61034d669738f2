"""Man pages and completions: every option that `--help` lists is in them, and the shells take them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.making import TIMEOUT
from tests.support.running import built

COMMANDS = (
    "inspector",
    "pieglobalsfind",
    "rank-debug-check",
    "ranklens-gdb-path",
    "ranklens-lldb-path",
    "rankrun",
    "rankmpir",
)

pytestmark = pytest.mark.timeout(TIMEOUT)


@pytest.fixture
def share(fresh: Path) -> Path:
    """Where the wheel has put them."""
    return fresh / "share"


def output(*words: object) -> str:
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_in_the_man_page_and_completed(share: Path, command: str) -> None:
    options = set(re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", output(built(command), "--help"), re.MULTILINE))
    page = (share / f"man/man1/{command}.1").read_text().replace("\\-", "-")
    assert options - {"--help"} <= set(re.findall(r"--[a-z-]+", page))
    assert re.search(rf"^{command} - \w", page, re.MULTILINE), "whatis has nothing to show"
    for place in (f"zsh/site-functions/_{command}", f"fish/vendor_completions.d/{command}.fish"):
        text = (share / place).read_text()
        assert all(re.search(rf"(--|-l ['\"]?){option[2:]}\b", text) for option in options), place


def test_bash_completes_commands_and_their_options(share: Path) -> None:
    script = share / "bash-completion/completions/inspector"
    ask = 'source "$1"; COMP_WORDS=("${@:2}"); COMP_CWORD=$(($# - 2)); _shtab_inspector; echo "${COMPREPLY[@]}"'

    def completed(*words: str) -> list[str]:
        return output("bash", "--norc", "-c", ask, "bash", script, "inspector", *words).split()

    assert completed("why") == ["why-different"]
    assert completed("report", "--ht") == ["--html"]
