"""Runs commands, each within its time, with its output in a file and its end told."""

import os
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

    @property
    def is_well(self):
        return self.status in ("ok", "skipped")


class Runner:
    """What is left of the time is shared by all steps; a step that outlasts its own part is ended with all it started."""

    def __init__(self, seconds, environment):
        self.end = time.monotonic() + seconds
        self.environment = environment
        self.running = set()
        self.ended = False

    def left(self):
        return self.end - time.monotonic()

    def run(self, step, command, log, limit, environment=None):
        limit = min(limit, self.left())
        if limit < 1 or self.ended:
            return Outcome(step, "cut off", note="there was no time left")
        outcome = Outcome(step)
        begun = time.monotonic()
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
                end_group(process)
                self.running.discard(process)
        outcome.seconds = time.monotonic() - begun
        with open(log, "rb") as file:
            file.seek(place)
            outcome.output = file.read().decode(errors="replace")
        return outcome

    def end_all(self):
        self.ended = True
        for process in list(self.running):
            end_group(process)


def end_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)  # also what it started and left
    except ProcessLookupError:
        pass
    process.wait()
