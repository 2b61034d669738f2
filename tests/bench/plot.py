"""One picture as SVG: lines through points, or bars where the values of x are names.

Takes names and numbers; gives text that browsers show as a picture. matplotlib draws it, the same text for the same
numbers.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Union

Points = Sequence[tuple[Union[float, str], float]]


def plot(title: str, x_name: str, y_name: str, series: Mapping[str, Points], dashed: Mapping[str, Points] = {}) -> str:
    """The whole picture, of at least one point. `dashed`: what the measured is held against, such as a paper's words.

    Axes of numbers are logarithmic where the values span more than a factor of ten, and are not percentages.
    """
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    matplotlib.rcParams.update({"svg.hashsalt": "ranklens", "svg.fonttype": "none", "font.size": 10})
    figure, axes = pyplot.subplots(figsize=(8, 4.5), layout="constrained")
    names = [x for points in series.values() for x, _ in points if isinstance(x, str)]
    if names:
        _bars(axes, series, list(dict.fromkeys(names)))
    else:
        for number, (name, points) in enumerate(series.items()):
            axes.plot([x for x, _ in points], [y for _, y in points], label=name, marker=MARKS[number % len(MARKS)])
        _scale(axes.set_xscale, [float(x) for points in series.values() for x, _ in points])
    for style, (name, points) in zip(DASHES, dashed.items()):
        axes.plot([x for x, _ in points], [y for _, y in points], style, color="gray", label=name)
    if not y_name.startswith("%"):
        _scale(axes.set_yscale, [y for points in series.values() for _, y in points])
    axes.set(title=title, xlabel=x_name, ylabel=y_name)
    axes.grid(True, alpha=0.3)
    axes.legend(fontsize=8, ncols=2)
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    pyplot.close(figure)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n"


MARKS = "os^vD<>pXh"
DASHES = ("--", ":", "-.")


def _bars(axes: object, series: Mapping[str, Points], names: Sequence[str]) -> None:
    width = 0.8 / len(series)
    for number, (name, points) in enumerate(series.items()):
        places = [names.index(str(x)) + (number - (len(series) - 1) / 2) * width for x, _ in points]
        axes.bar(places, [y for _, y in points], width, label=name)  # type: ignore[attr-defined]
    axes.set_xticks(range(len(names)), names)  # type: ignore[attr-defined]


def _scale(set_scale: object, values: Sequence[float]) -> None:
    if values and min(values) > 0 and max(values) > 10 * min(values):
        set_scale("log")  # type: ignore[operator]
