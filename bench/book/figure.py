# SPDX-License-Identifier: BSD-3-Clause
"""Figures of the book: SVG that is the same each time."""

import hashlib
import re
import warnings


class FigureError(Exception):
    """There is nothing to draw with."""


def pyplot():
    try:
        import matplotlib
    except ImportError as error:
        raise FigureError(
            "figures need matplotlib (Debian: python3-matplotlib) for the "
            "python3 in the path; --no-figures leaves them") from error
    matplotlib.use("svg")
    # Text stays text, and names of objects do not depend on the time
    matplotlib.rcParams.update({
        "svg.fonttype": "none", "svg.hashsalt": "sep", "font.size": 9,
        "axes.spines.top": False, "axes.spines.right": False,
        "axes.grid": True, "axes.grid.axis": "y", "grid.alpha": 0.3,
        "figure.constrained_layout.use": True})
    import matplotlib.pyplot
    return matplotlib.pyplot


# Colours that people who see few of them can tell apart (Okabe and Ito)
THEIRS = "#999999"
OURS = "#0072B2"
PEER = "#E69F00"
COLOURS = (OURS, PEER, "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "x")


def hatch(axes, label, colour, places):
    """Hatch some bars of a series, and say in the legend what that is."""
    drawn = next(found for found in axes.containers
                 if found.get_label() == label)
    for place in places:
        drawn[place].set(hatch="////", facecolor="white", edgecolor=colour)
    handles, labels = axes.get_legend_handles_labels()
    axes.legend([*handles, drawn[places[0]]], [*labels, f"{label}, fitted"],
                frameon=False, ncol=len(labels) + 1, loc="upper right",
                fontsize=7, handlelength=1.4, columnspacing=0.8,
                borderaxespad=0)


def plain_ticks(axis, ticks):
    """Numbers, not powers, on an axis with a logarithmic scale."""
    axis.set_ticks(ticks, [str(tick) for tick in ticks])
    axis.set_minor_formatter(lambda value, place: "")


def bars(axes, names, series):
    """Groups of bars: {label: (heights, colour)}."""
    width = 0.8 / len(series)
    for place, (label, (heights, colour)) in enumerate(series.items()):
        xs = [x + (place - (len(series) - 1) / 2) * width
              for x in range(len(names))]
        drawn = [(x, height) for x, height in zip(xs, heights)
                 if height is not None]
        axes.bar([x for x, _ in drawn], [height for _, height in drawn], width,
                 label=label, color=colour)
    axes.set_xticks(range(len(names)))
    axes.set_xticklabels(names, rotation=25, ha="right")
    # Room for the legend above the bars
    axes.margins(y=0.2)
    axes.legend(frameon=False, ncol=len(series), loc="upper right",
                fontsize=8)


def mark(table):
    """Of which numbers a figure is. Who can't draw can see that they are these."""
    digest = hashlib.sha256(table.text().encode()).hexdigest()
    return f"<!-- drawn from a table with SHA-256 {digest} -->"


def write(chapter, table, path):
    """Draw a chapter's figure to a file."""
    plt = pyplot()
    figure = plt.figure(figsize=(7, 3.2))
    try:
        chapter.draw(table, figure)
        with warnings.catch_warnings():
            # A label that finds no room is left out, and can be seen to be
            warnings.simplefilter("ignore")
            figure.savefig(path, format="svg",
                           metadata={"Date": None, "Creator": None})
    finally:
        plt.close(figure)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    # Who drew it, in a vocabulary of links, and where the format is defined
    text = re.sub(r" *<metadata>.*?</metadata>\n", "", text, flags=re.S)
    text = re.sub(r"<!DOCTYPE[^>]*>\n", "", text)
    with open(path, "w", encoding="utf-8") as file:
        file.write("".join(line.rstrip() + "\n" for line in
                           [*text.splitlines(), mark(table)]))
