#!/usr/bin/env python3
"""Uses `reel debug`, `reel diff` and `reel report` as people do: with commands, a script from a pipe, and on a terminal.

Usage: use_tool.py REEL WRITE_RECORDING
"""

import ctypes.util
import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

failures = []


def check(name, condition, shown=""):
    print(f"{'passed' if condition else 'FAILED'} {name}")
    if not condition:
        failures.append(name)
        print(shown)


def run(*command, text=None):
    return subprocess.run([str(word) for word in command], input=text, capture_output=True, text=True, timeout=60, check=False)


class Terminal:
    """A program on a pseudo-terminal."""

    def __init__(self, *command):
        self.rest = ""
        self.process, self.descriptor = pty.fork()
        if self.process == 0:
            os.environ["TERM"] = "xterm"
            os.environ["LC_ALL"] = "C.UTF-8"
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 200, 0, 0))
            os.execv(command[0], [str(word) for word in command])

    def until(self, text, seconds=30):
        """What the program prints up to a text; what comes behind it is kept for the next call."""
        printed, end = self.rest, time.monotonic() + seconds
        while text not in printed and time.monotonic() < end:
            if select.select([self.descriptor], [], [], 0.2)[0]:
                try:
                    printed += os.read(self.descriptor, 65536).decode(errors="replace")
                except OSError:  # the program has ended
                    break
        place = printed.find(text)
        found = len(printed) if place < 0 else place + len(text)
        self.rest = printed[found:]
        return printed[:found]

    def send(self, text):
        os.write(self.descriptor, text.encode())

    def status(self):
        return os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])


def use_debugger(tool, recording):
    found = run(tool, "debug", recording, "-c", "run until has_inf_or_nan", "-c", "li -d 1")
    check("commands find the NaN, its line and its time step", found.returncode == 0 and "log at" in found.stdout
          and "write_recording.cpp:" in found.stdout and "with t = 300" in found.stdout and "sub at" in found.stdout, found)
    script = "# a comment\nwhere\nlt -o tanh -c 3\nrun until op tanh\ngrad\npt -s\nquit\n"
    found = run(tool, "debug", recording, text=script)
    check("a script from a pipe runs", found.returncode == 0 and "executions of this line in step 0" in found.stdout
          and "(reel)" not in found.stdout, found)
    found = run(tool, "debug", recording, text="fly\n")
    check("a command that fails gives status 1", found.returncode == 1 and "error: there is no command 'fly'" in found.stdout, found)
    found = run(tool, "debug", recording.parent / "none.reel")
    check("a missing recording is one sentence", found.returncode == 1 and found.stderr.startswith("reel: RecordedRun::read: cannot open")
          and found.stderr.count("\n") == 1, found)


def use_terminal(tool, recording):
    terminal = Terminal(tool, "debug", recording)
    opening = terminal.until("(reel) ")
    check("a terminal gets a prompt and says where the run is", "at the beginning" in opening and "`help`" in opening, opening)
    terminal.send("run until has_inf_or_nan\n")
    check("a command on a terminal", "stopped, has_inf_or_nan: %" in terminal.until("log at"))
    terminal.until("(reel) ")
    terminal.send("lt -f has_inf_or\t")
    completed = terminal.until("nan", 5)
    terminal.send(" -c 2\n")
    completed += terminal.until("(reel) ", 5)
    # Without libedit a tabulator is no more than white space.
    check("words are completed", "(2, 3) f32" in completed or "there is no filter" in completed, completed)
    terminal.send("quit\n")
    check("quit ends with status 0", terminal.status() == 0)


def edit_lines(tool, recording):
    """Completes and repeats commands, for which libedit is loaded."""
    if not ctypes.util.find_library("edit"):
        print("libedit is not installed, so that no line is edited")
        return
    terminal = Terminal(tool, "debug", recording)
    terminal.send("run until has_inf_or_nan\n")
    terminal.until("log at")
    for typed, printed in ("wh\t\n", "ops, %1 to"), ("lt -f has_inf_or\t -c 2\n", "(2, 3) f32"), ("lt -s ti\t -c 1\n", "more; `lt"):
        terminal.send(typed)
        shown = terminal.until(printed, 5)
        check(f"a word of {typed!r} is completed", shown.endswith(printed), shown)
    error = "there is no command 'fly'"
    terminal.send("fly\n")
    terminal.until(error, 5)
    terminal.send("\x1b[A\n")
    shown = terminal.until(error, 5)
    check("an arrow shows the last command again", shown.endswith(error), shown)
    terminal.send("quit\n")
    check("quit ends edited lines with status 0", terminal.status() == 0)


def use_diff(tool, recording, other, folder):
    found = run(tool, "diff", recording, recording)
    check("a recording agrees with itself", found.returncode == 0 and found.stdout.startswith("The runs agree in all "), found)
    found = run(tool, "diff", recording, other)
    check("other runs differ, with status 1", found.returncode == 1 and "The runs differ first at op" in found.stdout, found)
    found = run(tool, "diff", recording)
    check("a missing argument is wrong usage", found.returncode == 2 and found.stderr.count("\n") == 1, found)
    found = run(tool, "diff", recording, recording, "--tolerance", "-1")
    check("a negative tolerance is wrong usage", found.returncode == 2, found)
    page = folder / "report.html"
    found = run(tool, "report", recording, other, "-o", page)
    html = page.read_text() if page.exists() else ""
    check("a report of two runs names their difference", found.returncode == 0 and "The runs differ first at op" in html, found)
    check("a report loads nothing", "http" not in html.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", ""), found)
    found = run(tool, "report", folder / "none.reel")
    check("a report of a missing recording is one sentence", found.returncode == 1 and found.stderr.count("\n") == 1, found)


def main():
    tool, write_recording = (Path(argument).absolute() for argument in sys.argv[1:3])
    with tempfile.TemporaryDirectory(prefix="reel_tool_") as name:
        folder = Path(name)
        recordings = [folder / "rnn.reel", folder / "lstm.reel"]
        for recording, kind in zip(recordings, ("rnn", "lstm")):
            subprocess.run([write_recording, recording, "2000", kind], check=True)
        use_debugger(tool, recordings[0])
        use_terminal(tool, recordings[0])
        edit_lines(tool, recordings[0])
        use_diff(tool, *recordings, folder)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
