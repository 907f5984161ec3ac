# SPDX-License-Identifier: BSD-3-Clause
"""The device a job runs on: a software instance of its own, and its counters."""

import json
import os
import shutil
import tempfile

from . import process

COUNTERS = ("wqes", "cqes", "bytes", "doorbells", "blueflames", "rnr_waits",
            "violations", "contexts_created", "uars_created", "qps_created",
            "cqs_created", "mrs_created")


class CounterError(Exception):
    """The device's counters cannot be had or make no sense."""


def parse_counters(text):
    """Totals of "mlx5sim-stat --json": what all processes of the instance did,
    those that have ended included."""
    try:
        document = json.loads(text)
    except ValueError as error:
        raise CounterError(f"mlx5sim-stat printed no JSON: {error}") from None
    totals = document.get("totals") if isinstance(document, dict) else None
    if not isinstance(totals, dict):
        raise CounterError('mlx5sim-stat printed no "totals" object')
    if not totals and document.get("processes") == []:
        return dict.fromkeys(COUNTERS, 0)       # nobody has used it yet
    missing = [name for name in COUNTERS if not isinstance(totals.get(name),
                                                           int)]
    if missing:
        raise CounterError("mlx5sim-stat totals lack " + ", ".join(missing))
    return {name: totals[name] for name in COUNTERS}


class NoDevice:
    """For transports that need no launcher (development only): nothing is
    counted, so nothing can be proven."""

    counts = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def environment(self):
        return {}

    def launcher(self):
        return []

    def counters(self):
        return dict.fromkeys(COUNTERS, 0)

    def leaks(self):
        return ""


class SoftwareDevice:
    """A private instance of the software device, for one row of the table: what
    one row leaves behind cannot change the next."""

    counts = True

    def __init__(self, build_dir):
        self.bin = os.path.join(build_dir, "bin")
        self.directory = None

    def __enter__(self):
        where = "/dev/shm" if os.path.isdir("/dev/shm") else None
        self.directory = tempfile.mkdtemp(prefix="mlx5sim-main-job.",
                                          dir=where)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.directory, ignore_errors=True)

    def environment(self):
        return {"MLX5SIM_DIR": self.directory, "MLX5SIM_STRICT": "y"}

    def launcher(self):
        return [os.path.join(self.bin, "mlx5sim-run")]

    def stat(self, *arguments):
        env = dict(os.environ, **self.environment())
        return process.run([os.path.join(self.bin, "mlx5sim-stat"),
                            *arguments], 20, env)

    def counters(self):
        """Totals since the instance was made."""
        result = self.stat("--json", "--all")
        if not result.ok:
            raise CounterError(result.why() + ": " +
                               (result.stderr.strip() or "no message"))
        return parse_counters(result.stdout)

    def leaks(self):
        """What outlived all processes, in words; empty if nothing did."""
        result = self.stat("--check-leaks")
        if result.ok:
            return ""
        text = (result.stderr.strip() or result.stdout.strip()).splitlines()
        return text[-1] if text else result.why()


def check_traffic(before, after, messages, payload):
    """Compare what the device did with what the programs sent. Returns a list
    of complaints, empty if the traffic went through the device."""
    done = {name: after[name] - before[name] for name in COUNTERS}
    complaints = []
    if done["wqes"] < messages:
        complaints.append(f"the device executed {done['wqes']} WQEs for at "
                          f"least {messages} messages")
    if done["bytes"] < payload:
        complaints.append(f"the device moved {done['bytes']} bytes of at least "
                          f"{payload}")
    if messages > 0 and done["cqes"] == 0:
        complaints.append("the device wrote no CQE")
    if done["violations"] > 0:
        complaints.append(f"{done['violations']} violations of the device's "
                          "rules")
    return complaints
