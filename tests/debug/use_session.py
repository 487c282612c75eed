#!/usr/bin/env python3
"""Debugs a running program by a script from a pipe, and on a terminal.

Usage: use_session.py SERVE_SESSION
"""

import subprocess
import sys
from pathlib import Path

from use_tool import Terminal, check, failures


def use_pipe(program):
    def run(script):
        return subprocess.run([program, "5", "terminal"], input=script, capture_output=True, text=True, timeout=60, check=False)

    found = run("cont until has_inf_or_nan\nwhere\nli -d 1\nlt -f has_nan -c 2\nquit\n")
    check("a script stops at the NaN, with its line and time step", "log at tests/debug/serve_session.cpp:" in found.stdout, found)
    check("its time step and inputs are shown", "step 3, with t = 5" in found.stdout and "sub at" in found.stdout, found)
    check("after quit the program runs to its end", found.returncode == 0 and found.stdout.endswith("serve_session: done\n"), found)
    found = run("")
    check("without commands it runs to its end", found.returncode == 0 and found.stdout.endswith("serve_session: done\n"), found)
    found = run("fly\ncont until large\n")
    check("a wrong command is said, and the next one is read", "error: there is no command 'fly'" in found.stdout
          and found.stdout.endswith("serve_session: done\n"), found)


def use_terminal(program):
    terminal = Terminal(program, "5", "terminal")
    opening = terminal.until("(reel) ")
    check("the program waits at its first op", "first op" in opening, opening)
    terminal.send("cont until step 2\n")
    check("it goes on until a step", ", step 2" in terminal.until("(reel) "))
    terminal.send("step\n")
    check("and by one op", "step 2" in terminal.until("(reel) "))
    terminal.send("cont until has_inf_or_nan\n")
    stopped = terminal.until("(reel) ")
    check("it stops at the NaN", "log at tests/debug/serve_session.cpp:" in stopped and "with t = 5" in stopped, stopped)
    terminal.send("src\n")
    shown = terminal.until("(reel) ")
    check("the source line is shown with its tensors", "static_cast<void>(log(h - 2.0f));" in shown and "NaN" in shown, shown)
    terminal.send("grad %1\n")
    terminal.until("(reel) ")
    terminal.send("cont\n")
    check("it runs to its end", "serve_session: done" in terminal.until("serve_session: done") and terminal.status() == 0)


def main():
    program = Path(sys.argv[1]).absolute()
    use_pipe(program)
    use_terminal(program)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
