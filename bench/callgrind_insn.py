#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Read the callgrind files that bench/uct_insn wrote.

usage: callgrind_insn.py sum       COUNTS FILE...
       callgrind_insn.py objects   COUNTS FILE...
       callgrind_insn.py layers    COUNTS FILE...
       callgrind_insn.py functions COUNTS FILE...
       callgrind_insn.py part=REGEX COUNTS FILE...
       callgrind_insn.py lines     COUNTS FILE...
       callgrind_insn.py process   COUNTS FILE...
       callgrind_insn.py process-functions COUNTS FILE...

COUNTS has a line "operation calls" for each operation. "sum" prints
"operation<TAB>instructions" per call, "objects" the same with the library in
between, "layers" a table of the layers of the stack, and "functions" prints,
per operation, every function that took part and its share. "part" is "sum" of
the functions whose name matches. "lines" prints the misses of simulated
caches, those of data and those of instructions: if each call began with caches
that are empty and large, these are the lines of memory that it touched, the
benchmark's own included. "process" is "sum" of
files that were not collected inside of measure_* functions only, but everywhere
and in all threads: what the software device calls in other libraries is then
not counted either, nor is waiting for spin locks, which takes as long as it
takes. "process-functions" is "functions" of these.

Otherwise, what is counted is the self cost of all functions, except
- the measure_* functions, which are the benchmark's own wrappers, and
- the software device, which a real one would carry out by itself. Its signal
  handler runs apart from the call that is interrupted, so callgrind does not
  collect it in the first place; this is a second line of defence.
"""

import collections
import re
import sys

DEVICE_OBJECT = "libmlx5sim.so"
WRAPPER = re.compile(r"^measure_")
CALLED_BY_DEVICE = "(called by the device)"
WAITING = re.compile(r"^pthread_spin_lock\b")

# Layers of the stack, from the application down, and their libraries. What is of
# no library is the benchmark's own.
LAYERS = {
    "MPI": re.compile(r"lib(mpich|mpi|open-rte|open-pal)\.so|mca_\w+\.so"),
    "UCP": re.compile(r"libucp\b"),
    "UCT": re.compile(r"libuct\w*\.so"),
    "UCS": re.compile(r"libuc[sm]\w*\.so"),
    "verbs": re.compile(r"lib(ibverbs|mlx5|mlx5-\w+)\.so"),
    "system": re.compile(r"(libc|libm|libpthread|ld-linux[\w-]*)[.-]"),
    "other": re.compile(r".*\.so\b"),
}


class Names:
    """Names in callgrind files: "(id) name" defines, "(id)" refers."""

    def __init__(self):
        self.known = {}

    def resolve(self, text):
        match = re.match(r"^\((\d+)\)(?: (.*))?$", text)
        if not match:
            return text
        number, name = match.groups()
        if name is not None:
            self.known[number] = name
        return self.known[number]


def entries(path):
    """(object, function, object of the function called if the line is the cost
    inside of one, line) for each line of a file but those that only name
    things."""
    objects, functions = Names(), Names()
    obj = fun = "?"
    callee = called = None
    spec = re.compile(r"^(ob|fl|fi|fe|fn|cob|cfi|cfl|cfn|calls)=(.*)$")

    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            line = line.rstrip("\n")
            match = spec.match(line)
            if not match:
                yield obj, fun, called, line
                called = None
                continue
            kind, value = match.groups()
            if kind == "ob":
                obj = objects.resolve(value)
            elif kind == "cob":
                callee = objects.resolve(value)
            elif kind == "fn":
                fun = functions.resolve(value)
            elif kind == "cfn":
                functions.resolve(value)
            elif kind == "calls":
                called, callee = callee or obj, None


def read(path, events=("Ir",), is_process=False):
    """(operation, {(object, function): self cost}) of one file. The cost is the
    sum of the given events. is_process: less, for the device, what it has called
    elsewhere."""
    operation = None
    costs = collections.Counter()
    columns = [1]

    for obj, fun, called, line in entries(path):
        match = re.match(r"^desc: Trigger: Client Request: (.*)$", line)
        if match:
            operation = match.group(1).strip()
        elif line.startswith("events: "):
            names = line.split()[1:]
            missing = [name for name in events if name not in names]
            if missing:
                sys.exit(f"callgrind_insn.py: {path} does not count "
                         f"{', '.join(missing)}")
            columns = [1 + names.index(name) for name in events]
        elif re.match(r"^[+\-*0-9]", line):
            words = line.split()
            # Zeros at the end are left out.
            cost = sum(int(words[column]) for column in columns
                       if column < len(words))
            if called is None:
                if not is_process or not WAITING.match(fun):
                    costs[obj, fun] += cost
            elif is_process and DEVICE_OBJECT in obj and \
                    DEVICE_OBJECT not in called:
                costs[called, CALLED_BY_DEVICE] -= cost

    return operation, costs


def counted(obj, fun):
    return DEVICE_OBJECT not in obj and not WRAPPER.match(fun)


def print_objects(name, costs, count):
    """One line per library that took part."""
    objects = collections.Counter()
    for (obj, fun), cost in costs.items():
        if counted(obj, fun):
            objects[obj.rsplit("/", 1)[-1]] += cost
    for obj, cost in objects.most_common():
        print(f"{name}\t{obj}\t{cost / count:.1f}")


def layer_of(obj):
    """Its name, or None."""
    name = obj.rsplit("/", 1)[-1]
    return next((layer for layer, libraries in LAYERS.items()
                 if libraries.match(name)), None)


def print_layers(found, calls):
    """Operation, instructions per call, and those of each layer."""
    print("operation", "total", *LAYERS, sep="\t")
    for name, costs in found.items():
        layers = dict.fromkeys(LAYERS, 0)
        for (obj, fun), cost in costs.items():
            layer = layer_of(obj)
            if layer is not None and counted(obj, fun):
                layers[layer] += cost
        cells = [sum(layers.values()), *layers.values()]
        print(name, *(f"{cell / calls[name]:.1f}" for cell in cells), sep="\t")


def collect(calls, paths, events=("Ir",), is_process=False):
    """{operation: costs}. Every thread and every request writes a file of its
    own."""
    found = {name: collections.Counter() for name in calls}
    for path in paths:
        operation, costs = read(path, events, is_process)
        if operation in found:
            found[operation].update(costs)
    return found


def print_lines(calls, paths):
    """Operation, lines of data, lines of instructions."""
    data = collect(calls, paths, ("D1mr", "D1mw"))
    code = collect(calls, paths, ("I1mr",))
    for name, count in calls.items():
        totals = [sum(cost for (obj, _), cost in costs[name].items()
                      if DEVICE_OBJECT not in obj) / count
                  for costs in (data, code)]
        print(f"{name}\t{totals[0]:.1f}\t{totals[1]:.1f}")


def main():
    mode, counts_path, *paths = sys.argv[1:]
    calls = {}
    with open(counts_path, encoding="utf-8") as lines:
        for line in lines:
            name, number = line.split()
            calls[name] = int(number)

    if mode == "lines":
        print_lines(calls, paths)
        return

    found = collect(calls, paths, is_process=mode.startswith("process"))
    if mode == "layers":
        print_layers(found, calls)
        return

    for name, costs in found.items():
        total = sum(cost for key, cost in costs.items() if counted(*key))
        if total == 0:
            sys.exit(f"callgrind_insn.py: no instruction was counted for {name}")
        total /= calls[name]
        if mode in ("sum", "process"):
            print(f"{name}\t{total:.1f}")
            continue
        if mode.startswith("part="):
            part = sum(cost for (_, fun), cost in costs.items()
                       if re.search(mode[len("part="):], fun))
            print(f"{name}\t{part / calls[name]:.1f}")
            continue
        if mode == "objects":
            print_objects(name, costs, calls[name])
            continue
        print(f"{name}: {total:.1f} per call")
        for (obj, fun), cost in costs.most_common():
            if counted(obj, fun):
                print(f"    {cost / calls[name]:8.1f}  {fun}"
                      f"  [{obj.rsplit('/', 1)[-1]}]")


if __name__ == "__main__":
    main()
