# SPDX-License-Identifier: BSD-3-Clause
"""Command line of the runner: contrib/check.sh, after installing packages."""

import os
import shutil

from . import check, conformance, jobs, junit, options, parts, process, roots, \
    unit
from .schedule import Schedule
from .session import Session
from .tokens import Tokens

_TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), "../../.."))

_KINDS = {parts.Gtest: unit.Run, parts.Check: check.Run,
          parts.CheckEach: check.Each, parts.Jobs: jobs.Run,
          parts.Conformance: conformance.Run, parts.Debian: roots.Run}


def main(arguments=None):
    chosen = options.parse(arguments)
    process.end_with_cleanup()
    match = options.matcher(chosen.one)
    seed = options.seed(chosen.seed) if chosen.seed else None
    if seed is not None:
        print(f"SEP_TEST_SEED={seed}")
    for some in options.chosen_parts(chosen):
        session = _run(chosen, some, seed, match)
        if session.results or session.listed:
            break
    if chosen.list:
        print("\n".join(session.listed))
        return 0 if session.listed else 1
    if not chosen.parts and not chosen.one:
        for part in parts.PARTS:
            if part.by_name:
                session.console.say("not run, as it is not named: "
                                    f"contrib/check.sh {part.name}")
    return session.console.closing(session.results, session.times, seed,
                                   session.left_out)


def _is_left_out(session, part, row):
    """Whether this machine can't build what a row needs; the part is named once
    in the closing line."""
    obstacles = {session.builds.obstacle(need) for need in
                 getattr(row, "needs", ()) if isinstance(need, parts.Script)}
    for obstacle in obstacles - {None}:
        what = part.name, obstacle
        if what not in session.left_out and session.wanted(part.name, row.run,
                                                           ""):
            session.leave_out(*what)
        return True
    return False


def _run(chosen, some, seed, match):
    """Plan some parts and do what was planned."""
    tokens = Tokens(chosen.jobs)
    schedule = Schedule(tokens)
    session = Session(_TOP, chosen, schedule, tokens, seed, match)
    if not chosen.list:
        for part in some:
            shutil.rmtree(os.path.join(session.results_dir, part.name),
                          ignore_errors=True)
    try:
        for part in some:
            for row in part.rows:
                if not _is_left_out(session, part, row):
                    _KINDS[type(row)](session, part.name, row).plan()
        schedule.run(session.console.tick)
    except BaseException:
        process.end_all()
        raise
    finally:
        for path in (os.path.join(session.results_dir, "junit.xml"),
                     chosen.junit):
            if path and not chosen.list:
                junit.write(path, session.results)
    return session
