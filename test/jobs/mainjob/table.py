# SPDX-License-Identifier: BSD-3-Clause
"""The table on the screen."""

NAME_WIDTH = 38
VALUE_WIDTH = 14


def format_value(value, unit):
    if value is None:
        return ""
    if value >= 1000:
        text = f"{value:.0f}"
    elif value >= 100:
        text = f"{value:.1f}"
    else:
        text = f"{value:.2f}"
    return f"{text} {unit}"


def format_ratio(first, second):
    if not first or not second:
        return ""
    return f"{first / second:.2f}"


def heading(transports):
    words = ["test".ljust(NAME_WIDTH)]
    words += [name.rjust(VALUE_WIDTH) for name in transports]
    if len(transports) == 2:
        words.append("ratio".rjust(7))
    words.append("WQEs/messages".rjust(19))
    line = " ".join(words)
    return line + "\n" + "-" * len(line)


def line(name, cells, ratio=None, work=""):
    words = [name[:NAME_WIDTH].ljust(NAME_WIDTH)]
    words += [cell.rjust(VALUE_WIDTH) for cell in cells]
    if ratio is not None:
        words.append(ratio.rjust(7))
    words.append(work.rjust(19))
    return " ".join(words).rstrip()
