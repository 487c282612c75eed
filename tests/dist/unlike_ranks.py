#!/usr/bin/env python3
"""unlike_ranks.py PROGRAM: where the last of two ranks ends before the other, or calls another function, or one with another
shape or dtype, the other one gets an error within 5 s that names the rank, what both do, and the line; one that computes for
long is waited for."""

import concurrent.futures
import os
import re
import subprocess
import sys
import threading
import time

PROGRAM = sys.argv[1]
MOST_SECONDS = 5
HANGS = 60  # s, with the start of mpirun
ENVIRONMENT = dict(os.environ, ASAN_OPTIONS="detect_leaks=0", OMP_NUM_THREADS="1", OMPI_ALLOW_RUN_AS_ROOT="1",
                   OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


def line_of(text):
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "unlike_ranks.cpp")) as file:
        return next(r"unlike_ranks\.cpp:%d" % number for number, line in enumerate(file, 1) if text in line)


REDUCES, TRAINS, BROADCASTS = line_of("// of a rank that reduces"), line_of("// of a rank that trains"), line_of("group.broadcast(x)")
OWN = r"this rank, 0, to all_reduce of \(3,\) f32 at .*" + REDUCES + r"; all ranks .*; at .*" + REDUCES
ENDED = r"rank 0 of 2: all_reduce: rank 1 has come to the end of the program, and " + OWN
GONE = r"rank 0 of 2: all_reduce: the process of rank 1 has ended, and this rank, 0, waits for it; at .*" + REDUCES
WAYS = {
    "exit": ENDED,
    "return": ENDED,
    "buffered": ENDED,
    "caught": "caught: " + ENDED.removeprefix("rank 0 of 2: "),
    "_exit": GONE,
    "SIGKILL": GONE,
    "begun": r"rank 0 of 2: all_reduce: rank 1 has come to start_all_reduce of \(3,\) f32 at .*, and " + OWN,
    "step": r"rank 0 of 2: start_all_reduce: rank 1 has come to the end of the program, and .* at .*" + TRAINS,
    "shape": r"rank 0 of 2: all_reduce: rank 1 has come to all_reduce of \(5,\) f32 at .*" + REDUCES + ", and " + OWN,
    "dtype": r"rank 0 of 2: all_reduce: rank 1 has come to all_reduce of \(3,\) i32 at .*" + REDUCES + ", and " + OWN,
    "buffer": r"rank 0 of 2: reduction_buffer: rank 1 has come to reduction_buffer of \(6,\) f32 at .*, and this rank, 0, to .*\(4,\)",
    "broadcast": r"rank 0 of 2: all_reduce: rank 1 has come to broadcast of \(3,\) f32 from rank 0 at .*" + BROADCASTS + ", and " + OWN,
    "slow": None,
}


def run(way, attempts=3):
    """Returns what is wrong with a run, or None, and the seconds that it took."""
    command = ["mpirun", "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1", "-np", "2", PROGRAM, way]
    since, errors, numbers = time.monotonic(), "", []
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace",
                          env=ENVIRONMENT) as process:
        watchdog = threading.Timer(HANGS, process.kill)
        watchdog.start()
        for line in process.stderr:
            errors += line
            if re.fullmatch(r"-?[0-9.e+]+", line.strip()):
                numbers.append(line.strip())
                since = time.monotonic()  # the start of mpirun does not count
        process.wait()
        watchdog.cancel()
    seconds = time.monotonic() - since
    if seconds > MOST_SECONDS:
        return f"{way}: it takes {seconds:.1f} s, and says: {errors}", seconds
    if WAYS[way] is None:
        right = process.returncode == 0 and numbers == ["2"] * 4
    else:
        right = process.returncode != 0 and re.search(WAYS[way], errors) and numbers == ["2"] * 2
    # mpirun ends the other rank, too, a second later, which may be too soon for it to speak on a busy machine.
    if not right and WAYS[way] == GONE and process.returncode != 0 and attempts > 1:
        return run(way, attempts - 1)
    return None if right else f"{way}: it exits with {process.returncode} and says: {errors}", seconds


with concurrent.futures.ThreadPoolExecutor(2) as pool:
    results = list(pool.map(run, WAYS))
for wrong in filter(None, (wrong for wrong, _ in results)):
    sys.exit(wrong)
print("; ".join(f"{way}: {seconds:.1f} s" for way, (_, seconds) in zip(WAYS, results)))
