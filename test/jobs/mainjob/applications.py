# SPDX-License-Identifier: BSD-3-Clause
"""Programs of others, as Debian has them: how they are started, and how it is seen
that they did right."""

import os
import re

MELT = """units lj
atom_style atomic
lattice fcc 0.85
region box block 0 8 0 8 0 8
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 2.5 4711
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify every 10 delay 0 check no
fix 1 all nve
thermo 50
run 200
"""

# hpccinf.txt, whose lines are known by their places
HPCC_LINES = (
    "HPLinpack benchmark input file", "of the software device",
    "HPL.out output file", "8 device out", "1 number of problem sizes",
    "{size} Ns", "1 number of NBs", "{block} NBs", "0 PMAP",
    "1 number of process grids", "{rows} Ps", "{columns} Qs",
    "16.0 threshold", "1 number of panel fact", "2 PFACTs",
    "1 number of recursive stopping criteria", "4 NBMINs",
    "1 number of panels in recursion", "2 NDIVs",
    "1 number of recursive panel fact", "1 RFACTs", "1 number of broadcasts",
    "1 BCASTs", "1 number of lookahead depths", "1 DEPTHs", "2 SWAP",
    "64 swapping threshold", "0 L1", "0 U", "1 equilibration",
    "8 memory alignment", "separator", "0 additional sizes for PTRANS",
    "1200", "0 additional block sizes for PTRANS", "40")

# Largest error of its FFT, and residual of its transposition and of HPL
HPCC_FFT_ERROR = 1e-13
HPCC_RESIDUAL = 16.0


class WrongResult(Exception):
    """An application's result is not what it should be."""


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def melt(lammps, where):
    """Command line of a Lennard-Jones crystal that melts, for LAMMPS."""
    return [lammps, "-in", write(os.path.join(where, "in.melt"), MELT), "-log",
            "none", "-screen", os.path.join(where, "screen")]


def melt_result(screen):
    """Thermodynamics of the run: rows of numbers, as they were printed."""
    match = re.search(r"^Step Temp .*\n((?:\s*[-+.\de]+(?:\s+[-+.\de]+)+\s*\n)+)",
                      screen, re.M)
    if match is None:
        raise WrongResult("LAMMPS printed no thermodynamics")
    rows = [tuple(line.split()) for line in match.group(1).splitlines()]
    if rows[-1][0] != "200":
        raise WrongResult(f"LAMMPS ended at step {rows[-1][0]}")
    return tuple(rows)


def hpcc_input(ranks, size):
    """hpccinf.txt for so many ranks, and matrices of that size."""
    rows = max(number for number in range(1, ranks + 1) if
               ranks % number == 0 and number * number <= ranks)
    return "\n".join(HPCC_LINES).format(
        size=size, block=16, rows=rows, columns=ranks // rows) + "\n"


def hpcc_summary(text):
    """{name: number} of the summary at the end of hpccoutf.txt."""
    found = {}
    for name, number in re.findall(r"^(\w+)=(\S+)$", text, re.M):
        try:
            found[name] = float(number)
        except ValueError:
            continue
    return found


def hpcc_result(text):
    """The summary, if HPCC has found all of its results to be right."""
    found = hpcc_summary(text)
    limits = {"MPIRandomAccess_Errors": 0, "MPIRandomAccess_LCG_Errors": 0,
              "PTRANS_residual": HPCC_RESIDUAL, "MPIFFT_maxErr": HPCC_FFT_ERROR}
    if found.get("Success") != 1:
        raise WrongResult("HPCC did not succeed")
    for name, limit in limits.items():
        if not 0 <= found.get(name, -1) <= limit:
            raise WrongResult(f"HPCC: {name} is {found.get(name)}")
    if not re.search(r"^\|\|Ax-b.*PASSED$", text, re.M) or "FAILED" in text:
        raise WrongResult("HPCC: HPL or PTRANS has failed its residual checks")
    return found


def netpipe_times(text):
    """{bytes: microseconds} of NetPIPE's output file."""
    rows = [line.split() for line in text.splitlines()]
    if not rows or any(len(row) != 3 for row in rows):
        raise WrongResult("NetPIPE wrote no rows of three numbers")
    return {int(row[0]): float(row[2]) * 1e6 for row in rows}


def netpipe_integrity(output):
    """Sizes for which NetPIPE has compared the data, all of them with success."""
    rows = re.findall(r"^\s*\d+:\s+(\d+) bytes\s.*--> (.*)$", output, re.M)
    wrong = [f"{size} bytes: {words.strip()}" for size, words in rows if
             "Integrity check passed" not in words]
    if not rows or wrong:
        raise WrongResult("NetPIPE: " + ("; ".join(wrong) or
                                         "no data were compared"))
    return [int(size) for size, _ in rows]
