#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Fit the model's parameters of an adapter to measured rates.

The measurements are rows "op,policy,threads,depth,bytes,mops", as for
"sep_info --predict", or what "sep_perf --tsv" has printed on an adapter. Of that,
only what the model is about is used: messages that are posted one by one, each
with a completion, in turns:

    sep_perf --tsv --turns --features no-postlist+unsignaled -b 8 ... > rows.tsv

 Fitted are the parameters of the adapter whose values say
so in the file of adapters ("# fitted: ..."), by least squares of the logarithms
of predicted to measured rates (Levenberg and Marquardt). All others stay as they
are. The model itself is sep_info's: this script has none of it.

    fit-model.py --adapter cx6 --fit op=read rows.csv       errors before, after
    fit-model.py --adapter cx6 --fit op=read --write rows.csv
    fit-model.py --adapter cx6 --fit op=read --cross-validate rows.csv

Where only the trend of a measurement is to be trusted, --relative fits to rates
relative to the first row of the same op; --parameter names what to fit, so that
other measurements can have fitted the rest.

To describe another adapter, copy a section of the file, change its name and what
is known of the machine, measure, and run this with --write.
"""

import argparse
import csv
import io
import math
import os
import re
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
LINE = re.compile(r"^(\w+)(\s*=\s*)(\S+)(\s+\S+\s+#\s*fitted\s*:.*)$")


class Failure(Exception):
    pass


class Adapters:
    """The file of adapters, and the fitted parameters of one of them."""

    def __init__(self, path, adapter, parameters=()):
        with open(path, encoding="utf-8") as file:
            self.lines = file.read().splitlines(keepends=True)
        self.places = {}  # name -> index of line
        section = None
        for index, line in enumerate(self.lines):
            if line.startswith("["):
                section = line.strip().strip("[]")
            match = LINE.match(line)
            if match and section == adapter:
                self.places[match[1]] = index
        if not self.places:
            raise Failure(f"{path}: adapter {adapter} has no fitted parameter")
        for name in parameters:
            if name not in self.places:
                raise Failure(f"{path}: adapter {adapter} has no fitted "
                              f"parameter {name}")
        self.places = {name: index for name, index in self.places.items()
                       if not parameters or name in parameters}

    def values(self):
        return {name: float(LINE.match(self.lines[index])[3])
                for name, index in self.places.items()}

    def text(self, values):
        lines = list(self.lines)
        for name, value in values.items():
            index = self.places[name]
            lines[index] = LINE.sub(
                lambda m, v=value: f"{m[1]}{m[2]}{v:.4g}{m[4]}",
                lines[index].rstrip("\n")) + "\n"
        return "".join(lines)

    def exact(self, values):
        """The file with other values, with all digits, for derivatives."""
        lines = list(self.lines)
        for name, value in values.items():
            index = self.places[name]
            lines[index] = LINE.sub(
                lambda m, v=value: f"{m[1]}{m[2]}{v!r}{m[4]}",
                lines[index].rstrip("\n")) + "\n"
        return "".join(lines)


def unusable(row):
    """Why a row of sep_perf is not what the model is about, or None."""
    if row["mops"] == "-":
        return "measured on the software device, where there is no rate"
    if row["policy"] == "-":
        return "what threads share has no name"
    if row["postlist"] != "1" or row["signal"] != "1":
        return "lists of messages, or messages without a completion"
    if row["turns"] != "y":
        return "not in turns (--turns)"
    if posting_path(row) is None:
        return "a way of posting that sep_info --path does not have"
    return None


def posting_path(row):
    """What sep_info --path calls the way in which a row was posted, or None."""
    if "level" not in row:
        return "verbs"  # As SMART's rows are
    blueflame = "blueflame" not in row["features"]  # "no-..." names what is not
    is_inline = row["inline"] == "y"
    if row["level"] != "verbs":
        # The model has data up to this length inline
        could_be = row["op"] in ("write", "send") and int(row["bytes"]) <= 220
        return "sep" if blueflame and is_inline == could_be else None
    if is_inline:
        return "inline" if blueflame else None
    if not blueflame:
        return "verbs"
    could_be = row["op"] in ("write", "send") and int(row["bytes"]) <= 60
    return None if could_be else "blueflame"


class Rows:
    """Measurements."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            lines = [line for line in file
                     if line.strip() and not line.startswith("#")]
        is_perf = bool(lines) and "\t" in lines[0]
        self.rows = list(csv.DictReader(
            lines, delimiter="\t" if is_perf else ","))
        self.columns = ["op", "policy", "threads", "depth", "bytes"]
        if is_perf:
            self.leave_out(path)
        elif self.rows:
            self.columns += [name for name in ("qps", "signal", "steady")
                             if name in self.rows[0]]
        for row in self.rows:
            try:
                if not float(row["mops"]) > 0:
                    raise ValueError
            except (KeyError, TypeError, ValueError) as error:
                raise Failure(f"{path}: a row without a rate in column mops: "
                              f"{row}") from error

    def leave_out(self, path):
        """Rows of sep_perf that the model is not about."""
        reasons = {}
        for row in self.rows:
            try:
                reason = unusable(row)
            except (KeyError, TypeError, ValueError) as error:
                raise Failure(f"{path}: this is not what sep_perf --tsv "
                              f"prints: {error!r}") from error
            reasons.setdefault(reason, []).append(row)
        self.rows = reasons.pop(None, [])
        texts = [f"{len(rows)}: {reason}" for reason, rows in reasons.items()]
        if not self.rows:
            raise Failure(f"{path}: there is no row that the model can be "
                          f"fitted to; {'; '.join(texts) or 'it is empty'}")
        for text in texts:
            print(f"fit-model.py: {path}: left out {text}", file=sys.stderr)

    def select(self, conditions):
        """Indices of rows for which all conditions name=value hold."""
        chosen = []
        for index, row in enumerate(self.rows):
            holds = True
            for condition in conditions:
                name, _, value = condition.partition("=")
                if name not in row:
                    raise Failure(f"{condition}: there is no column {name}")
                holds = holds and row[name] in value.split("|")
            if holds:
                chosen.append(index)
        if not chosen:
            raise Failure(f"no row is {' '.join(conditions)}")
        return chosen


class Model:
    """sep_info, as a function of parameters."""

    def __init__(self, sep_info, adapter, adapters, rows, is_relative):
        self.sep_info, self.adapter = sep_info, adapter
        self.is_relative = is_relative
        self.adapters, self.rows = adapters, rows
        self.measured = [math.log(float(row["mops"])) for row in rows.rows]
        paths = {}  # To numbers of rows
        for index, row in enumerate(rows.rows):
            paths.setdefault(posting_path(row), []).append(index)
        self.inputs = []  # Path, numbers of rows, and what sep_info reads
        for path, indices in paths.items():
            text = io.StringIO()
            writer = csv.DictWriter(text, rows.columns, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(rows.rows[index] for index in indices)
            self.inputs.append((path, indices, text.getvalue()))

    def residuals(self, values):
        """Logarithms of predicted to measured rates, of all rows."""
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
            file.write(self.adapters.exact(values))
            file.flush()
            predicted = [0.0] * len(self.measured)
            for path, indices, text in self.inputs:
                for index, rate in zip(indices,
                                       self.rates(path, text, file.name)):
                    predicted[index] = rate
        residuals = [math.log(max(rate, 1e-9)) - measured
                     for rate, measured in zip(predicted, self.measured)]
        if self.is_relative:
            first = {}  # By op
            residuals = [
                residual - first.setdefault(row["op"], residual)
                for residual, row in zip(residuals, self.rows.rows)]
        return residuals

    def rates(self, path, text, adapters):
        """Predicted rates of rows that were posted in one way."""
        result = subprocess.run(
            (self.sep_info, "--predict", "-", "--adapter", self.adapter,
             "--adapters", adapters, "--path", path), input=text, text=True,
            capture_output=True, check=False)
        if result.returncode != 0:
            raise Failure(result.stderr.strip())
        return [float(row["predicted_mops"])
                for row in csv.DictReader(io.StringIO(result.stdout))]


def solve(matrix, vector):
    """Of linear equations, with pivots."""
    rows = [list(row) + [value] for row, value in zip(matrix, vector)]
    size = len(rows)
    for i in range(size):
        pivot = max(range(i, size), key=lambda j: abs(rows[j][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for j in range(i + 1, size):
            factor = rows[j][i] / rows[i][i]
            rows[j] = [a - factor * b for a, b in zip(rows[j], rows[i])]
    result = [0.0] * size
    for i in reversed(range(size)):
        rest = sum(rows[i][j] * result[j] for j in range(i + 1, size))
        result[i] = (rows[i][size] - rest) / rows[i][i]
    return result


def descend(evaluate, point, steps=60):
    """Least squares from a point on. Returns the point at the end, and its
    sum of squares."""
    here = evaluate(point)
    cost = sum(r * r for r in here)
    damping = 1e-2
    for _ in range(steps):
        slopes = []
        for i in range(len(point)):
            near = list(point)
            near[i] += 1e-3
            slopes.append([(a - b) / 1e-3
                           for a, b in zip(evaluate(near), here)])
        normal = [[sum(a * b for a, b in zip(p, q)) for q in slopes]
                  for p in slopes]
        gradient = [-sum(a * b for a, b in zip(p, here)) for p in slopes]
        before = cost
        for _ in range(10):
            damped = [[x + (damping * (x + 1e-9) if i == j else 0)
                       for j, x in enumerate(row)]
                      for i, row in enumerate(normal)]
            # No parameter changes by more than a factor of e in a step
            there = [x + max(-1.0, min(1.0, d))
                     for x, d in zip(point, solve(damped, gradient))]
            try:
                residuals = evaluate(there)
            except Failure:  # a value that is out of bounds
                residuals = [math.inf]
            if sum(r * r for r in residuals) < cost:
                point, here = there, residuals
                cost = sum(r * r for r in here)
                damping = max(damping / 5, 1e-4)
                break
            damping *= 4
        if before - cost < 1e-6 * cost:
            break
    return point, cost


def fit(model, values, chosen, quick=False):
    """Values of the parameters for which the chosen rows fit best. The model has
    kinks, at which a descent can stop: so there is a short one from each side of
    where it did, in each parameter, until that finds nothing better."""
    names = list(values)

    def evaluate(at):
        everything = model.residuals(
            {name: math.exp(x) for name, x in zip(names, at)})
        return [everything[index] for index in chosen]

    point, cost = descend(evaluate,
                          [math.log(values[name]) for name in names])
    before = 0 if quick else math.inf
    while cost < 0.999 * before:
        before = cost
        for i in range(len(names)):
            for side in (-0.25, 0.25):
                there = list(point)
                there[i] += side
                try:
                    there, squares = descend(evaluate, there, steps=6)
                except Failure:  # out of bounds
                    continue
                if squares < cost:
                    point, cost = there, squares
    return {name: math.exp(x) for name, x in zip(names, point)}


def error_line(title, residuals):
    errors = sorted(abs(math.exp(r) - 1) * 100 for r in residuals)
    middle = len(errors) // 2
    median = errors[middle] if len(errors) % 2 else \
        (errors[middle - 1] + errors[middle]) / 2
    return f"{title:<34} {len(errors):5d} {median:8.1f} {errors[-1]:8.1f}"


def print_errors(rows, residuals, chosen):
    print(f"{'error of the prediction, %':<34} {'rows':>5} {'median':>8} "
          f"{'worst':>8}")
    rest = sorted(set(range(len(residuals))) - set(chosen))
    for title, indices in (("fitted", chosen), ("not fitted", rest)):
        if not indices:
            continue
        print(error_line(title, [residuals[i] for i in indices]))
        kinds = {}
        for index in indices:
            row = rows.rows[index]
            kinds.setdefault(f"{row['op']} {row['policy']}", []).append(index)
        for kind, members in kinds.items():
            print(error_line("  " + kind, [residuals[i] for i in members]))


def folds(rows, chosen):
    """What to leave out in turn: rows of one kind, which the others must
    predict, and each fifth row. What most rows are like can't be left out."""
    kinds = {}
    for position, index in enumerate(chosen):
        row = rows.rows[index]
        threads = int(row["threads"])
        for name in (f"depth {row['depth']}", row["policy"],
                     "threads, up to 60" if threads <= 60 else
                     "threads, above 60",
                     f"each fifth row, from {position % 5 + 1}"):
            kinds.setdefault(name, []).append(index)
    return {name: members for name, members in kinds.items()
            if len(members) <= len(chosen) // 2}


def cross_validate(model, rows, values, chosen):
    print(f"{'left out of the fit, error %':<34} {'rows':>5} {'median':>8} "
          f"{'worst':>8}")
    everything = []
    for name, members in sorted(folds(rows, chosen).items()):
        rest = sorted(set(chosen) - set(members))
        residuals = model.residuals(fit(model, values, rest, quick=True))
        print(error_line(name, [residuals[i] for i in members]), flush=True)
        everything += [residuals[i] for i in members]
    print(error_line("all", everything))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("rows", help="measurements, CSV or TSV")
    parser.add_argument("--adapter", required=True, help="name in the file")
    parser.add_argument(
        "--adapters", default=os.path.join(TOP, "src/model/adapters.conf"),
        help="the file (default src/model/adapters.conf)")
    parser.add_argument(
        "--fit", action="append", default=[], metavar="COLUMN=VALUE",
        help="use these rows only; several values with | between")
    parser.add_argument("--parameter", action="append", default=[],
                        metavar="NAME", help="fit these only")
    parser.add_argument("--relative", action="store_true",
                        help="rates relative to the first row of the same op")
    parser.add_argument("--write", action="store_true",
                        help="write the values to the file of adapters")
    parser.add_argument("--quick", action="store_true",
                        help="for values that are nearly right")
    parser.add_argument("--check", action="store_true",
                        help="only print the errors, fit nothing")
    parser.add_argument("--cross-validate", action="store_true",
                        help="leave out rows of one kind after the other")
    parser.add_argument(
        "--sep-info", default=os.path.join(
            os.environ.get("SEP_BUILD_DIR", TOP), "bin/sep_info"),
        help="the program (default bin/sep_info of SEP_BUILD_DIR)")
    options = parser.parse_args()

    try:
        adapters = Adapters(options.adapters, options.adapter,
                            options.parameter)
        rows = Rows(options.rows)
        chosen = rows.select(options.fit)
        model = Model(options.sep_info, options.adapter, adapters, rows,
                      options.relative)
        values = adapters.values()
        if not options.check:
            fitted = fit(model, values, chosen, options.quick)
            print(f"{'parameter':<20} {'was':>10} {'is':>10}")
            for name, value in values.items():
                print(f"{name:<20} {value:10.4g} {fitted[name]:10.4g}")
            print()
            values = fitted
        print_errors(rows, model.residuals(values), chosen)
        if options.cross_validate:
            print()
            cross_validate(model, rows, values, chosen)
        if options.write:
            with open(options.adapters, "w", encoding="utf-8") as file:
                file.write(adapters.text(values))
    except (Failure, OSError) as error:
        print(f"fit-model.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
