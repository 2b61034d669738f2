"""Draws docs/layers.svg: the folders of each package, in the order in which `make lint` holds their imports.

It reads the contracts in pyproject.toml and the first sentence of each folder. Run it from the project's folder:
`.venv/bin/python docs/layers.py`. A test compares the picture with what this would draw.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

import tomllib

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "layers.svg"
CORE = "pieglobalsfind"
FACES = {
    "gdbext": "ranks in GDB",
    "lldbext": "ranks as LLDB's threads",
    "inspector": "reports on live jobs and files",
}
WIDTH, MARGIN, ROW, GAP = 980, 20, 30, 16
STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1b1f24}.name{font:600 13px ui-monospace,monospace}"
    ".box{fill:#f6f8fa;stroke:#8c959f}.row{fill:#fff;stroke:#d0d7de}.note{fill:#57606a}"
    "@media (prefers-color-scheme:dark){text{fill:#e6edf3}.box{fill:#161b22;stroke:#6e7681}"
    ".row{fill:#0d1117;stroke:#30363d}.note{fill:#9da7b3}}"
)


def layers_of(package: str) -> list[list[str]]:
    """The package's layers, from the top, each with the modules that may not import one another."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (contract,) = (each for each in contracts if each["type"] == "layers" and each["containers"] == [package])
    return [layer.split(" | ") for layer in contract["layers"]]


def is_folder(package: str, name: str) -> bool:
    """Whether a layer's module is a folder, and not a single file."""
    return (ROOT / package / name / "__init__.py").exists()


def first_sentence(package: str, name: str) -> str:
    """The first line of what the folder or module says of itself."""
    path = ROOT / package / name / "__init__.py" if is_folder(package, name) else ROOT / package / f"{name}.py"
    summary = (ast.get_docstring(ast.parse(path.read_text())) or "").split("\n")[0]
    return summary.replace("`", "").rstrip(".")


def text(x: int, y: int, content: str, kind: str = "") -> str:
    """One line of text with its baseline at `y`."""
    return f'<text x="{x}" y="{y}"' + (f' class="{kind}"' if kind else "") + f">{escape(content)}</text>"


def box(x: int, y: int, width: int, height: int, kind: str) -> str:
    """A rectangle with round corners."""
    return f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" class="{kind}"/>'


def face(package: str, x: int, y: int, width: int, height: int) -> Iterator[str]:
    """A package that uses the core: its name, what it is for, and its folders from the top."""
    names = [name for layer in layers_of(package) for name in layer if is_folder(package, name)]
    yield box(x, y, width, height, "box")
    yield text(x + 12, y + 22, package, "name")
    yield text(x + 100, y + 22, FACES[package], "note")
    for number, name in enumerate(names):
        yield text(x + 12, y + 46 + 19 * number, f"{name}/", "name")


def core(layers: Sequence[Sequence[str]], y: int) -> Iterator[str]:
    """The core's layers; modules of one layer stand in rows that touch."""
    for layer in layers:
        height = ROW * len(layer)
        yield box(MARGIN, y, WIDTH - 2 * MARGIN, height - 4, "row")
        for number, name in enumerate(layer):
            middle = y + ROW * number + 18
            yield text(MARGIN + 12, middle, f"{name}/" if is_folder(CORE, name) else f"{name}.py", "name")
            yield text(MARGIN + 140, middle, first_sentence(CORE, name))
        y += height


def drawing() -> str:
    """The picture as SVG."""
    layers = [layer for layer in layers_of(CORE) if layer != ["__main__"]]
    tallest = max(sum(is_folder(package, name) for layer in layers_of(package) for name in layer) for package in FACES)
    height_of_faces = 46 + 19 * tallest
    width_of_face = (WIDTH - 2 * MARGIN - 2 * GAP) // 3
    parts: list[str] = []
    for number, package in enumerate(FACES):
        parts += face(package, MARGIN + number * (width_of_face + GAP), MARGIN, width_of_face, height_of_faces)
    y = MARGIN + height_of_faces + 30
    parts.append(text(MARGIN, y - 8, f"▲ answers, and imports go down: {CORE}/", "note"))
    parts += core(layers, y)
    y += ROW * sum(len(layer) for layer in layers) + 24
    sources = "a live process, a core file, a snapshot, a debugger's inferior"
    parts.append(text(MARGIN, y - 6, f"▲ bytes of the target: {sources}", "note"))
    parts.append(box(MARGIN, y + 4, WIDTH - 2 * MARGIN, 40, "box"))
    parts.append(text(MARGIN + 12, y + 29, "runtime-hooks/", "name"))
    registry = "what a runtime publishes in its own memory (rank_debug.h), and a small runtime that does"
    parts.append(text(MARGIN + 140, y + 29, registry))
    height = y + 64
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="The folders of ranklens and the direction of their imports"><style>{STYLE}</style>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


if __name__ == "__main__":
    PICTURE.write_text(drawing())
