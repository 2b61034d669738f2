"""Which folders are installed, and under which names: those of three are taken on PyPI, so they get names of ours."""

import os
import re
from pathlib import Path

from setuptools import find_packages, setup

NAMES = {
    "pieglobalsfind": "pieglobalsfind",
    "gdbext": "ranklens_gdbext",
    "lldbext": "ranklens_lldbext",
    "inspector": "ranklens_inspector",
}


def installed_name(package: str) -> str:
    """Return the name under which a package is installed."""
    top, dot, rest = package.partition(".")
    return NAMES[top] + dot + rest


README = Path("README.md").read_text()
URL = os.environ.get("RANKLENS_URL")  # of the repository, where there is a public one: its CI says so


def description() -> str:
    """The README with links that work anywhere: into the repository at its address, or none."""
    target = rf"{URL}/blob/main/\2" if URL else ""
    without_pictures = re.sub(r"^!\[.*\n", "", README, flags=re.MULTILINE)
    return re.sub(r"\[([^]]+)\]\((?!https?:)([^)]+)\)", rf"[\1]({target})" if URL else r"\1", without_pictures)


def shared_files() -> list[tuple[str, list[str]]]:
    """By their folder below the prefix: pages, an example, and what `make wheel` writes, man pages and completions."""
    folders = [(Path(folder), names) for folder, _, names in os.walk("build/share") if names]
    doc = "share/doc/ranklens"
    return [
        (f"{doc}/examples", ["tests/programs/jacobi3d/jacobi3d.c"]),
        (f"{doc}/docs/vscode", ["docs/vscode/launch.json"]),
        (f"{doc}/docs", sorted(map(str, Path("docs").glob("*.md")))),
        *((str(folder.relative_to("build")), [str(folder / name) for name in names]) for folder, names in folders),
    ]


setup(
    long_description=description(),
    long_description_content_type="text/markdown",
    project_urls={"Source": URL, "Issues": f"{URL}/issues", "Changelog": f"{URL}/blob/main/CHANGELOG.md"}
    if URL
    else {},
    data_files=shared_files(),
    packages=[
        installed_name(package) for folder in NAMES for package in find_packages(include=[folder, f"{folder}.*"])
    ],
    package_dir={name: folder for folder, name in NAMES.items()},
)
