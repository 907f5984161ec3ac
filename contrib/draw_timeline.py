#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draw a part of a timeline of the software device as SVG.

    mlx5sim-run --trace timeline.json COMMAND
    contrib/draw_timeline.py timeline.json > picture.svg

A row for each thread, queue pair and completion queue, as in Perfetto, which
shows whole timelines; this is for a few microseconds in a document. Of all
doorbells that follow each other those are drawn, with what happens up to the
next one, that do it soonest: nothing but the device was in between.
"""

import argparse
import html
import json
import sys

LEFT, RIGHT, ROW, TOP = 190, 110, 34, 24     # Pixels
RINGS = ("doorbell", "BlueFlame")
STEPS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10 ** 9)


def read(path):
    """The events of a timeline, which has no end while processes write it."""
    with open(path, encoding="utf-8") as file:
        return json.loads(file.read().rstrip().rstrip(",").rstrip("]") + "]")


def choose(events, number):
    """What happens from some doorbells to the next one, and for how long;
    times count from the first."""
    begins = sorted(event["ts"] for event in events if event["name"] in RINGS)
    pairs  = list(zip(begins, begins[number:]))
    if not pairs:
        sys.exit(f"draw_timeline.py: there are not {number + 1} doorbells")
    begin, end = min(pairs, key=lambda pair: pair[1] - pair[0])
    chosen = [dict(event, ts=event["ts"] - begin) for event in events
              if event["ph"] != "M" and begin <= event["ts"] < end]
    return chosen, max(event["ts"] + event["dur"] for event in chosen)


def names(events):
    """Of the rows; threads have none of their own."""
    result = {}
    for event in events:
        row = event["pid"], event["tid"]
        result.setdefault(row, "thread")
        if event["ph"] == "M":
            result[row] = event["args"]["name"]
    return result


def svg(events, rows, length, width):
    """Lines of the picture; length is in us, width in pixels."""
    scale  = (width - LEFT - RIGHT) / length
    pids   = list(dict.fromkeys(event["pid"] for event in
                                sorted(events, key=lambda each: each["ts"])))
    tracks = sorted({(event["pid"], event["tid"]) for event in events},
                    key=lambda track: (pids.index(track[0]),
                                       "tQC".index(rows[track][0]), track[1]))
    height = TOP + ROW * len(tracks) + 14
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
           f'height="{height}" font-family="sans-serif" font-size="11">')
    yield f'<rect width="{width}" height="{height}" fill="white"/>'
    for number, track in enumerate(tracks):
        y    = TOP + ROW * number
        text = f"process {pids.index(track[0]) + 1}, {rows[track]}"
        yield (f'<text x="8" y="{y + 4}">{html.escape(text)}</text>'
               f'<path d="M{LEFT} {y}H{width - 8}" stroke="#d4d4d4"/>')
    for event in events:
        x    = LEFT + event["ts"] * scale
        y    = TOP + ROW * tracks.index((event["pid"], event["tid"]))
        size = max(event["dur"] * scale, 3)
        yield (f'<rect x="{x:.1f}" y="{y - 6}" width="{size:.1f}" height="12" '
               f'fill="{"#6baed6" if event["dur"] > 0 else "#d95f0e"}"/>'
               f'<text x="{x:.1f}" y="{y - 9}">'
               f'{html.escape(event["name"])}</text>')
    step = next(step for step in STEPS if length / step <= 10)
    for time in range(0, int(length) + 1, step):
        yield (f'<text x="{LEFT + time * scale:.1f}" y="{height - 6}" '
               f'text-anchor="middle">{time}</text>')
    yield f'<text x="8" y="{height - 6}">microseconds</text></svg>'


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("timeline")
    parser.add_argument("--rings", type=int, default=1,
                        help="doorbells (%(default)s)")
    parser.add_argument("--width", type=int, default=800, help="pixels")
    args           = parser.parse_args()
    events         = read(args.timeline)
    chosen, length = choose(events, args.rings)
    print("\n".join(svg(chosen, names(events), length, args.width)))


if __name__ == "__main__":
    main()
