"""Which folders are installed, and under which names: those of three are taken on PyPI, so they get names of ours."""

from setuptools import find_packages, setup

NAMES = {
    "pieglobalsfind": "pieglobalsfind",
    "gdbext": "ranklens_gdbext",
    "lldbext": "ranklens_lldbext",
    "inspector": "ranklens_inspector",
}


def installed_name(package: str) -> str:
    top, dot, rest = package.partition(".")
    return NAMES[top] + dot + rest


setup(
    packages=[
        installed_name(package) for folder in NAMES for package in find_packages(include=[folder, f"{folder}.*"])
    ],
    package_dir={name: folder for folder, name in NAMES.items()},
)
