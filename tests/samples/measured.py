#!/usr/bin/env python3
"""measured.py tools/samples: measures small programs in the place of samples."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

TOOL = sys.argv[1]
PROGRAM = """#!/bin/sh
echo "{name} $*" >>"{calls}"
case $* in
  *--help*) echo '  --seed UINT [7]  of all random numbers' ;;
  *) {body} ;;
esac
"""
TABLE = r"printf 'epoch 1\n\nset   trees   accuracy\ntest    500   12.00 %%\ndev    1101   {accuracy} %%\n'"
BOUNDS = """
[[first]]
what = "% of trees"
number = '([0-9.]+) %$'
at_least = 50
[[first]]
number = "seconds"
at_most = 60
"""


class Workplace:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        for name in ("samples", "build/samples", "data/trees"):
            (self.folder / name).mkdir(parents=True)
        self.calls = self.folder / "calls"
        self.calls.touch()
        (self.folder / "data/trees/dev.txt").write_text("tree")
        (self.folder / "samples/bounds.toml").write_text(BOUNDS)
        (self.folder / "samples/README.md").write_text("before\n<!-- samples -->\n<!-- samples -->\n<!-- measured -->\n<!-- measured -->\nafter\n")
        self.add("first", TABLE.format(accuracy="60.00"), "tools/run first --hidden 2 [--cell other]")
        self.add("second", 'cat "$2"; ' + TABLE.format(accuracy="70.00"),
                 "tools/run second --dev dev.txt\n//          --seed 3\n//          tools/run second --dev trees/none.txt")

    def add(self, name, body, command):
        (self.folder / f"samples/{name}.cpp").write_text(f"// Learns.\n//\n// Command: {command}\n// Result: good\n\nint x;\n")
        program = self.folder / "build/samples" / name
        program.write_text(PROGRAM.format(name=name, calls=self.calls, body=body))
        program.chmod(0o755)

    def command(self, *arguments):
        return [TOOL, "--build", self.folder / "build", "--samples", self.folder / "samples", "--results", self.folder / "results",
                *arguments]

    def run(self, *arguments, status=0):
        done = subprocess.run(self.command(*arguments), capture_output=True, text=True)
        check(done.returncode == status, f"{arguments}: exit status {done.returncode}, wanted {status}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def runs(self):
        """The calls of programs since the last time, but for those that ask for help."""
        lines = [line for line in self.calls.read_text().splitlines() if "--help" not in line]
        self.calls.write_text("")
        return lines

    def rows(self):
        """The rows of the table, their cells but the times and the processor."""
        text = (self.folder / "samples/README.md").read_text()
        check(text.startswith("before\n") and text.endswith("after\n"), f"the text beside the table has changed: {text}")
        check("| [`first`](first.cpp) | Learns. |\n| [`second`](second.cpp) | Learns. |\n" in text, f"the list of samples is wrong: {text}")
        return [tuple(cell.strip() for cell in line.split("|")[1:4]) for line in text.splitlines() if line.startswith("| `")]


def check(holds, what):
    if not holds:
        sys.exit(what)


with tempfile.TemporaryDirectory() as folder:
    place = Workplace(folder)
    first = ("`first --hidden 2`", "dev: 1101 trees; 60.00 % accuracy", "7")
    second = ("`second --dev dev.txt --seed 3`", "dev: 1101 trees; 70.00 % accuracy", "3")
    absent = ("`second --dev trees/none.txt`", "not measured", "")

    said = place.run("--measure")
    check("second --dev dev.txt --seed 3: not measured: it wants dev.txt; name the folder by --data" in said, said)
    check(place.rows() == [first, (second[0], "not measured", ""), absent], f"without data: {place.rows()}")
    check(place.runs() == ["first --hidden 2"], "without data only the first sample runs")

    said = place.run("--measure", "--data", f"{folder}/data")
    check("there is no trees/none.txt in" in said, said)
    check(place.rows() == [first, second, absent], f"with data: {place.rows()}")
    check(place.runs() == [f"second --dev {os.path.realpath(folder)}/data/trees/dev.txt --seed 3"], "the first result is kept")

    said = place.run("--check", "--data", f"{folder}/data")
    check("first --hidden 2: % of trees 60, at least 50: holds" in said and place.runs() == [], said)
    place.add("first", TABLE.format(accuracy="40.00"), "tools/run first --hidden 2")
    said = place.run("--check", "first", status=1)
    check("first --hidden 2: % of trees 40, at least 50: BROKEN" in said and place.runs() == ["first --hidden 2"], said)
    check(place.rows() == [first, second, absent], "--check changes the table")

    # A run that is killed keeps what is finished; what fails, or is measured no more, leaves the table's row.
    place.add("second", "sleep 100", "tools/run second --hidden 3")
    place.add("first", TABLE.replace("epoch 1\\n", "").format(accuracy="80.00"), "tools/run first --hidden 2")  # a table alone
    process = subprocess.Popen(place.command("--measure"), stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        if line.startswith("second"):
            break
    while "second" not in place.calls.read_text():
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    check(process.wait(60) == 143, "a SIGTERM does not end it with 143")
    eighty = (first[0], "dev: 1101 trees; 80.00 % accuracy", "7")
    check(place.rows()[0] == eighty, f"a finished result is lost: {place.rows()}")
    place.runs()
    place.add("second", "echo cannot >&2; exit 3", "tools/run second --hidden 3")
    said = place.run("--measure", status=1)
    check("second --hidden 3: not measured: it ends with exit status 3: cannot" in said, said)
    check(place.rows() == [eighty, ("`second --hidden 3`", "not measured", "")], f"after a failure: {place.rows()}")
    check(place.runs() == ["second --hidden 3"], "a result is not kept over a kill")
    said = place.run("--measure", "third", status=1)
    check("there is no sample 'third'; the samples are: first, second." in said, said)
