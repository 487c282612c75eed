#!/usr/bin/env python3
"""survives.py SCENARIO FILE PROGRAM ARGUMENT…: what a training run of PROGRAM leaves where something goes wrong.

FILE is a small set of examples. The arguments make the run a short one."""

import os
import signal
import subprocess
import sys
import tempfile

SCENARIO, EXAMPLES, *COMMAND = sys.argv[1:]
FOLDER = tempfile.TemporaryDirectory()
WEIGHTS = os.path.join(FOLDER.name, "weights.safetensors")
ENDLESS = ["--epochs", "100000"]


def check(holds, what):
    if not holds:
        sys.exit(f"{SCENARIO}: {what}")


def command(*arguments):
    """The command with other options, or others in the place of its own."""
    options = dict(zip(COMMAND[1::2], COMMAND[2::2])) | dict(zip(arguments[::2], arguments[1::2]))
    return COMMAND[:1] + [word for option in options.items() for word in option]


def run(*arguments, stdout=subprocess.PIPE):
    done = subprocess.run(command(*arguments), stderr=subprocess.PIPE, stdout=stdout, text=True)
    done.stderr = done.stderr.strip()
    return done


def heed_signals():
    # A shell that starts jobs in the background lets them ignore SIGINT, and programs leave it at that.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


def start(words):
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heed_signals)


def check_refused(done, status, words):
    check(done.returncode == status, f"exit status {done.returncode}, wanted {status}; it says: {done.stderr}")
    check(words in done.stderr and "\n" not in done.stderr, f"wanted one line with '{words}', found: {done.stderr}")


def train():
    """Weights that are worth keeping."""
    done = run("--save", WEIGHTS)
    check(done.returncode == 0, done.stderr)


def content():
    with open(WEIGHTS, "rb") as file:
        return file.read()


def check_saved():
    done = run("--load", WEIGHTS, "--epochs", "0", "--test", EXAMPLES)
    check(done.returncode == 0, f"what was saved cannot be loaded: {done.stderr}")
    check(os.listdir(FOLDER.name) == [os.path.basename(WEIGHTS)], f"beside the weights: {os.listdir(FOLDER.name)}")


def end_by(number, at_line):
    """Sends a signal as soon as a line is printed that has the words in it."""
    process = start(command(*ENDLESS, "--save", WEIGHTS))
    for line in process.stdout:
        if at_line in line:
            break
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    process.stderr = said.strip()
    name = signal.Signals(number).name
    check_refused(process, 128 + number, f"interrupted by {name}; the best weights so far are in '{WEIGHTS}'")
    check_saved()


def interrupted():
    end_by(signal.SIGINT, "epoch")


def terminated_early():
    end_by(signal.SIGTERM, "parameters")


def closed_pipe():
    process = start(command(*ENDLESS, "--save", WEIGHTS))
    process.stdout.readline()
    process.stdout.close()
    process.stderr = process.stderr.read().strip()
    process.wait(60)
    check_refused(process, 1, f"Broken pipe; the best weights so far are in '{WEIGHTS}'")
    check_saved()


def full_output():
    with open("/dev/full", "w") as full:
        done = run("--save", WEIGHTS, stdout=full)
        check_refused(done, 1, f"No space left on device; the best weights so far are in '{WEIGHTS}'")
        check_saved()
        done = subprocess.run(COMMAND[:1] + ["--help"], stderr=subprocess.PIPE, stdout=full, text=True)
        done.stderr = done.stderr.strip()
        check_refused(done, 1, "cannot write to stdout: No space left on device")


def diverged():
    train()
    before = content()
    done = run("--save", WEIGHTS, "--learning-rate", "1e38")
    check_refused(done, 1, f"; '{WEIGHTS}' was not written")
    check(content() == before, "a file of good weights was overwritten")
    done = run("--load", WEIGHTS, "--save", WEIGHTS, "--learning-rate", "1e38")
    check_refused(done, 1, f"; the best weights so far are in '{WEIGHTS}'")
    check(content() == before, "the loaded weights were overwritten by others")


def worse():
    train()
    before = content()
    done = run("--load", WEIGHTS, "--save", WEIGHTS, "--epochs", "1", "--learning-rate", "20")
    check(done.returncode == 0, done.stderr)
    check("loaded weights" in done.stdout, done.stdout)
    check(content() == before, f"a worse model took the place of a better one: {done.stdout}")


def checked_first():
    """What cannot be read or written is found before the first epoch."""
    latin = os.path.join(FOLDER.name, "latin")
    with open(EXAMPLES, "rb") as file:
        examples = file.read()
    with open(latin, "wb") as file:
        file.write(examples.replace(b"the", b"caf\xe9"))
    nowhere = os.path.join(FOLDER.name, "none", "weights")
    for option, value, words in [("--test", nowhere, f"cannot open '{nowhere}': No such file or directory"),
                                 ("--dev", nowhere, f"cannot open '{nowhere}': No such file or directory"),
                                 ("--save", nowhere, f"cannot write '{nowhere}': No such file or directory"),
                                 ("--save", FOLDER.name, "is no ordinary file"),
                                 ("--train", latin, f"{latin}:1: the line is not UTF-8 at byte"),
                                 ("--test", latin, f"{latin}:1: the line is not UTF-8 at byte"),
                                 ("--train", "/dev/zero", "'/dev/zero' is no text"),
                                 ("--train", "/proc/self/mem", "cannot read '/proc/self/mem': Input/output error"),
                                 ("--train", FOLDER.name, f"cannot read '{FOLDER.name}': Is a directory")]:
        done = run(option, value)
        check_refused(done, 1, words)
        check("epoch" not in done.stdout, f"{option} {value} is refused after training")


globals()[SCENARIO]()
