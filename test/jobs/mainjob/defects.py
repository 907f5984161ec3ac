# SPDX-License-Identifier: BSD-3-Clause
"""Defects of others: of UCX on a device without DevX, as the software device is,
and of Open MPI.

Those of UCX are about rc_mlx5 alone. Where a setting helps, it is set; what is of
no use then is left out with the reason. All else that fails has failed.
"""

import re

from . import perftest


def version(text):
    """Version of UCX in the output of "ucx_info -v": (major, minor)."""
    match = re.search(r"[Vv]ersion[:= ]+(\d+)\.(\d+)", text)
    return (int(match.group(1)), int(match.group(2))) if match else (0, 0)


def of_test(test, transport, ucx_version):
    """Why a row of ucx_perftest need not be run with that version, or None."""
    if transport == "rc_mlx5" and test.api == "uct" and \
            test.name in perftest.ATOMICS + ("add_lat", "add_mr") and \
            ucx_version >= (1, 16):
        # uct_ib_mlx5dv_md_open() makes a key to flush with from the process
        # number, whose second byte is sent as atomic_mr_id. The peer adds eight
        # times that to the address, although the key that it has for atomics,
        # by uct_ib_verbs_mkey_pack(), is the direct one. So a test waits for
        # ever for what has been written elsewhere.
        return ("UCX 1.16 and later write to a wrong address in atomics of "
                "rc_mlx5 without DevX")
    return None


def of_ports(transport, ucx_version):
    """Why two ports of an adapter can't be used at the same time, or None."""
    # ucp_tl_resource_is_same_device() takes two resources of one PCI function
    # for one device, which has one address in what is sent to peers: that of
    # the last port. With it goes the number of a queue pair of the first port.
    # sep_mlx5 names no function, nor did UCX before.
    if transport == "rc_mlx5" and ucx_version >= (1, 16):
        return ("UCX 1.16 and later give peers one address for all ports of a "
                "PCI function")
    return None


def settings(transport, ucx_version):
    """Variables without which UCX of that version has such a defect."""
    # A fence of UCP flushes remote memory by reading it with a key that only
    # DevX makes. UCT_RC_IFACE_CHECK_FLUSH_REMOTE() finds that there is none, but
    # is empty unless UCX was configured to check parameters, and the read goes
    # out with UCT_IB_MD_INVALID_FLUSH_RKEY. A weak fence does not flush; it does
    # for lanes of one device.
    if transport == "rc_mlx5" and ucx_version >= (1, 16):
        return {"UCX_FENCE_MODE": "weak"}
    return {}


# Programs whose threads communicate at the same time, by library
THREADS = {"openmpi": ("endpoints", "app_kernels"), "oshmem": ("app_kernels",)}


def of_job(job, output):
    """Why a job was ended for which its MPI library is to blame, or None."""
    # Two places of Open MPI 5 use a worker for one thread from another: osc/ucx
    # progresses those of others, and spml/ucx hands on those of contexts that
    # have been destroyed. UCX notices it if it has assertions, as Debian 13's
    # has, on any transport.
    if job.program in THREADS.get(job.library, ()) and \
            re.search(r"ucs_async_check_owner_thread\(&\((ep->)?worker\)->async\)"
                      r"' failed", output):
        return ("Open MPI uses a worker that is another thread's, which this "
                "UCX checks")
    return None
