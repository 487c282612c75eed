"""Runs commands, each within its time, with its output in a file and its end told."""

import concurrent.futures
import contextlib
import os
import resource
import signal
import subprocess
import time
from dataclasses import dataclass, field


SKIPPED = 77  # what a test exits with that cannot run here


@dataclass
class Outcome:
    step: str
    status: str = "not run"  # "ok", "FAILED", "cut off", "skipped"
    seconds: float = 0.0
    note: str = ""
    output: str = field(default="", repr=False)
    processor_seconds: float = 0.0  # of all processes that ended meanwhile; those of one step where no other runs beside it

    @property
    def is_well(self):
        return self.status in ("ok", "skipped")


def processor_seconds():
    """Of all processes that this one has started, and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Runner:
    """What is left of the time is shared by all steps; a step that outlasts its own part is ended with all it started."""

    def __init__(self, seconds, environment, has_limits=True):
        self.end = time.monotonic() + seconds
        self.environment = environment
        self.has_limits = has_limits
        self.running = set()
        self.ended = False

    def left(self):
        return self.end - time.monotonic()

    def run(self, step, command, log, limit, environment=None):
        limit = min(limit if self.has_limits else self.left(), self.left())
        if limit < 1 or self.ended:
            return Outcome(step, "cut off", note="there was no time left")
        outcome = Outcome(step)
        begun, processors = time.monotonic(), processor_seconds()
        with open(log, "ab") as output:
            output.write(f"== {step}: {' '.join(map(str, command))}\n".encode())
            output.flush()
            place = output.tell()
            try:
                process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=output,
                                           stderr=subprocess.STDOUT, env={**self.environment, **(environment or {})},
                                           start_new_session=True)
            except OSError as error:
                return Outcome(step, "FAILED", note=f"could not be started: {error}")
            self.running.add(process)
            try:
                status = process.wait(limit)
                outcome.status = {0: "ok", SKIPPED: "skipped"}.get(status, "FAILED")
                if outcome.status == "FAILED":
                    outcome.note = (f"was stopped by {signal.Signals(-status).name}" if status < 0
                                    else f"exited with {status}")
            except subprocess.TimeoutExpired:
                outcome.status, outcome.note = "cut off", f"did not end within {limit:.0f} s"
            finally:
                end_session(process)
                self.running.discard(process)
        outcome.seconds, outcome.processor_seconds = time.monotonic() - begun, processor_seconds() - processors
        with open(log, "rb") as file:
            file.seek(place)
            outcome.output = file.read().decode(errors="replace")
        return outcome

    @staticmethod
    def concurrently(function, items):
        """The results of a function, several at a time."""
        with concurrent.futures.ThreadPoolExecutor(max(1, min(8, os.cpu_count() or 2))) as pool:
            return list(pool.map(function, items))

    def end_all(self):
        self.ended = True
        for process in list(self.running):
            end_session(process)

    @contextlib.contextmanager
    def paused(self):
        """Stops the running processes meanwhile, so that measurements have the processors for themselves."""
        sessions = [process.pid for process in self.running]
        # The second round finds processes that were started before their parent was stopped.
        for session in sessions * 2:
            send(session, signal.SIGSTOP)
        try:
            yield
        finally:
            for session in sessions:
                send(session, signal.SIGCONT)


def members(session):
    """Ninja gives each command a group of its own; all are of one session."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended
            if int(fields[3]) == session:
                yield int(entry)


def send(session, what):
    for member in members(session):
        try:
            os.kill(member, what)
        except ProcessLookupError:
            pass


def end_session(process):
    """Also what it has started and left."""
    send(process.pid, signal.SIGKILL)
    process.wait()
