#!/usr/bin/env python3
"""survives_kill.py PROGRAM: an error or a status of one rank ends all of them, and says which, an error in which op and at
which line; success and SIGTERM end them quietly; a rank that SIGKILL ends at a random moment ends the others within 5 s, with
a sentence; the run goes on from its checkpoint, also on fewer ranks, and ends with the parameters of a run that was never
interrupted.

3 kills; with REEL_ENDURANCE=1 in the environment 100. The moments come from REEL_SEED, which is printed."""

import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

PROGRAM = sys.argv[1]
KILLS, STEPS = (100, "300") if os.environ.get("REEL_ENDURANCE") == "1" else (3, "90")
SEED = int(os.environ.get("REEL_SEED", "1"))
MOST_SECONDS = 5
ENVIRONMENT = dict(os.environ, ASAN_OPTIONS="detect_leaks=0", OMP_NUM_THREADS="1", OMPI_ALLOW_RUN_AS_ROOT="1",
                   OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


def launch(ranks, *arguments):
    command = ["mpirun", "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1", "-np", str(ranks),
               PROGRAM, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)


def finish(process, seconds):
    """Returns what a process printed. Fails if it takes longer than that."""
    try:
        return process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        sys.exit(f"after {seconds} s it still runs")


def processes_of(launcher):
    with open(f"/proc/{launcher.pid}/task/{launcher.pid}/children") as file:
        return [int(word) for word in file.read().split()]


def check_error(folder):
    process = launch(2, os.path.join(folder, "throws"), STEPS, "throws")
    _, errors = finish(process, 30)
    if process.returncode == 0 or not re.search(r"rank 1 of 2: matmul: .*\(2, 3\).*small_ranks\.cpp:\d+", errors):
        sys.exit(f"of an error of one rank it exits with {process.returncode} and says: {errors}")


def check_status(process, status, said):
    """Checks with what a run exits, and whether a rank has said that it ends the others for that."""
    _, errors = finish(process, 30)
    if process.returncode != status or ("the program has ended with status" in errors) != said:
        sys.exit(f"it exits with {process.returncode} in place of {status} and says: {errors}")


def check_ends(folder):
    """A status that is not 0 ends the other ranks; success and a signal, which all ranks agree on, do not."""
    check_status(launch(2, os.path.join(folder, "ends"), "3", "check"), 3, True)
    check_status(launch(2, os.path.join(folder, "ends"), "3"), 0, False)
    for mode in "", "catches":
        process = launch(2, os.path.join(folder, "signal" + mode), "1000000", mode)
        process.stdout.readline()  # "saved"
        os.kill(processes_of(process)[0], signal.SIGTERM)
        check_status(process, 128 + signal.SIGTERM, False)


def parameters_in(output):
    return [float(line) for line in output.splitlines() if line != "saved"]


def kill_one(process, moments, seconds):
    """Kills a rank after that time. Returns how many seconds the others went on, or None if the run was done before, and
    what it printed."""
    try:
        output, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        pass
    else:
        if process.returncode != 0:
            sys.exit(f"it exits with {process.returncode}: {errors}")
        return None, output
    victims = processes_of(process)
    if not victims:  # none has started yet, or all have ended
        output, errors = finish(process, 600)
        if process.returncode != 0:
            sys.exit(f"it exits with {process.returncode}: {errors}")
        return None, output
    try:
        os.kill(moments.choice(victims), signal.SIGKILL)
    except ProcessLookupError:
        pass
    begin = time.monotonic()
    output, errors = finish(process, MOST_SECONDS)
    if process.returncode == 0:
        return None, output  # it was done at that moment
    if not re.search(r"rank \d+ .* exited on signal 9 \(Killed\)", errors):
        sys.exit(f"of a killed rank it says: {errors}")
    return time.monotonic() - begin, output


def main():
    place = tempfile.TemporaryDirectory()
    folder = place.name
    check_error(folder)
    check_ends(folder)
    begin = time.monotonic()
    process = launch(1, os.path.join(folder, "whole"), STEPS)
    output, errors = finish(process, 600)
    if process.returncode != 0:
        sys.exit(errors)
    expected, whole = parameters_in(output), time.monotonic() - begin
    print(f"seed {SEED}; an uninterrupted run takes {whole:.2f} s", flush=True)
    moments = random.Random(SEED)
    kills = runs = checks = 0
    slowest = 0.0
    while kills < KILLS:
        directory, saved, seconds = os.path.join(folder, f"run{runs}"), False, 0.0
        while seconds is not None:
            ranks = moments.randint(2, 4)
            if kills >= KILLS:
                ranks = 1  # on fewer ranks to the end
            lifetime = moments.uniform(0.2, 1 + whole) if kills < KILLS else 600
            seconds, output = kill_one(launch(ranks, directory, STEPS), moments, lifetime)
            saved = saved or "saved" in output
            if seconds is None:
                break
            kills += 1
            slowest = max(slowest, seconds)
            if saved:
                checks += 1
                check = subprocess.run([PROGRAM, directory, STEPS, "check"], capture_output=True, text=True)
                if check.returncode != 0:
                    sys.exit(f"after kill {kills} no checkpoint can be restored: {check.stderr}")
        found = parameters_in(output)
        if len(found) != len(expected) or any(abs(a - b) > 1e-3 for a, b in zip(found, expected)):
            worst = max((abs(a - b) for a, b in zip(found, expected)), default=None)
            sys.exit(f"run {runs}: {len(found)} parameters differ by up to {worst} from the {len(expected)} of one process")
        runs += 1
    print(f"{kills} kills in {runs} runs, the others ended within {slowest:.2f} s; {checks} times a checkpoint was "
          "restored after one: all end as one process does")


main()
