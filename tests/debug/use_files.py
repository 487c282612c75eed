#!/usr/bin/env python3
"""Uses `reel inspect`, `reel convert`, `reel completion` and the manual page; hostile and huge files among them.

Usage: use_files.py REEL MANUAL WRITE_RECORDING [--sanitized]
"""

import json
import os
import re
import resource
import struct
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

failures = []
# A sanitizer needs memory of its own. The address sanitizer also keeps what is freed, 256 MB of it unless told otherwise.
MOST_KILOBYTES = (200 if "--sanitized" in sys.argv else 50) * 1024
os.environ["ASAN_OPTIONS"] = ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), "quarantine_size_mb=1"]))


def check(name, condition, shown=""):
    print(f"{'passed' if condition else 'FAILED'} {name}")
    if not condition:
        failures.append(name)
        print(shown)


def run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60, check=False)


def safetensors(path, tensors, size=None, header=None):
    """Writes a file of f32 tensors, {name: numbers}; with `size` the file is sparse and has one tensor of that many bytes."""
    entries, data = {}, b""
    for name, numbers in tensors.items():
        entries[name] = {"dtype": "F32", "shape": [len(numbers)], "data_offsets": [len(data), len(data) + 4 * len(numbers)]}
        data += struct.pack(f"<{len(numbers)}f", *numbers)
    if size:
        entries = {"huge": {"dtype": "F32", "shape": [size // 4], "data_offsets": [0, size]}}
    text = json.dumps(entries).encode() if header is None else header
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    if size:
        os.truncate(path, 8 + len(text) + size)


def measured(*command):
    """The result of a command, its seconds, and the kilobytes that it had in memory."""
    start = time.monotonic()
    with subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, output, time.monotonic() - start, usage.ru_maxrss


def inspect(tool, folder):
    plain, other = folder / "plain.safetensors", folder / "other.safetensors"
    safetensors(plain, {"layer.weight": [1, -2, 0, 4], "bias": [float("nan"), 1]})
    safetensors(other, {"layer.weight": [1, -2, 0, 4.5], "scale": [1]})
    found = run(tool, "inspect", plain)
    check("inspect lists names, forms and statistics", found.returncode == 0 and re.search(r"layer\.weight +\(4,\) f32 +16 B +-2 +4 +0\.75 +0 +0 +1", found.stdout)
          and re.search(r"bias +\(2,\) f32 +8 B .* 1 +0 +0", found.stdout), found)
    found = run(tool, "inspect", plain, "--json")
    check("inspect prints JSON", json.loads(found.stdout)["tensors"][0]["bytes"] in (8, 16), found)
    found = run(tool, "inspect", plain, other)
    check("inspect compares two files, with status 1", found.returncode == 1 and "1 of 4 elements differ, by at most 0.5" in found.stdout
          and "only in" in found.stdout, found)
    check("a file equals itself, NaN included", all(run(tool, "inspect", one, one).returncode == 0 for one in (plain, other)))
    safetensors(folder / "nan.safetensors", {"layer.weight": [1, float("nan"), 0, float("-inf")], "bias": [float("nan"), 1]})
    found = run(tool, "inspect", plain, folder / "nan.safetensors")
    check("NaN and infinity differ from numbers", found.returncode == 1 and "2 of 4 elements differ" in found.stdout and "bias" not in found.stdout, found)
    many = folder / "many.safetensors"
    safetensors(many, {f"layer.{i}": [i] for i in range(20000)})
    status, output, _, kilobytes = measured(tool, "inspect", many)
    check("a header that is too long to be read unasked is refused", status == 1 and "more than the 1048576 that are read unasked" in output, output)
    check("and read when asked for", "19999" in run(tool, "inspect", many, "--statistics").stdout)
    safetensors(many, {f"layer.{i}": [i] for i in range(13000)})
    status, output, _, kilobytes = measured(tool, "inspect", many)
    check("the longest header that is read unasked needs little memory", status == 0 and kilobytes < MOST_KILOBYTES, (many.stat(), kilobytes))
    safetensors(many, {}, size=16 * 10**6)
    status, output, _, kilobytes = measured(tool, "inspect", many)
    check("statistics of 16 MB need little memory", status == 0 and "4000000" in output.split()[-1] and kilobytes < MOST_KILOBYTES,
          (output, kilobytes))
    recording = folder / "some.reel"
    recording.write_bytes(b"REELREC1")
    found = run(tool, "inspect", recording, recording)
    check("inspect leaves comparing recordings to diff", found.returncode == 1 and "`reel diff A B`" in found.stderr, found)
    for name, content in {"truncated": plain.read_bytes()[:-3], "cut in the header": plain.read_bytes()[:20], "no header": b"\xff" * 64,
                          "a header of 2⁶³ bytes": struct.pack("<Q", 1 << 63) + b"{}", "empty": b""}.items():
        hostile = folder / "hostile.safetensors"
        hostile.write_bytes(content)
        status, output, seconds, kilobytes = measured(tool, "inspect", hostile)
        check(f"a file that is {name} is refused in one sentence", status == 1 and output.startswith("reel: ") and output.count("\n") == 1
              and seconds < 5 and kilobytes < MOST_KILOBYTES, (status, output, seconds, kilobytes))
    (folder / "hostile.safetensors").write_bytes(struct.pack("<Q", 90 * 10**6) + b"{")
    os.truncate(folder / "hostile.safetensors", 10**11)
    status, output, _, kilobytes = measured(tool, "inspect", folder / "hostile.safetensors")
    check("a header of 90 MB is refused in little memory", status == 1 and output.count("\n") == 1 and kilobytes < MOST_KILOBYTES, (output, kilobytes))
    for name, header in {"overlapping": {"a": [0, 8], "b": [4, 12]}, "beyond the end": {"a": [0, 1 << 40]}}.items():
        entries = {key: {"dtype": "F32", "shape": [(end - start) // 4], "data_offsets": [start, end]} for key, (start, end) in header.items()}
        safetensors(folder / "hostile.safetensors", {"x": [0, 0, 0]}, header=json.dumps(entries).encode())
        status, output, _, kilobytes = measured(tool, "inspect", folder / "hostile.safetensors")
        check(f"tensors that are {name} are refused in one sentence", status == 1 and output.count("\n") == 1 and kilobytes < MOST_KILOBYTES, output)
    huge = folder / "huge.safetensors"
    safetensors(huge, {}, size=100 * 10**9)
    status, output, seconds, kilobytes = measured(tool, "inspect", huge)
    check("a sparse file of 100 GB is listed at once, in little memory", status == 0 and "100.0 GB" in output and "--statistics" in output
          and seconds < 5 and kilobytes < MOST_KILOBYTES, (status, output, seconds, kilobytes))
    print(f"  {seconds:.2f} s, {kilobytes} KB")
    for name in ("huge.npy", "huge.npz", "huge.pt", "huge.reel"):
        with open(folder / name, "wb") as file:
            file.truncate(100 * 10**9)
            file.seek(0)
            file.write({"huge.npy": b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }".ljust(127) + b"\n",
                        "huge.reel": b"REELREC1"}.get(name, b"PK\x03\x04"))
        status, output, seconds, kilobytes = measured(tool, "inspect", folder / name)
        check(f"a broken {name} of 100 GB is refused at once", status == 1 and output.count("\n") == 1 and seconds < 5
              and kilobytes < MOST_KILOBYTES, (status, output, seconds, kilobytes))
    snapshots = folder / "snapshots"
    snapshots.mkdir()
    safetensors(snapshots / "step-1.safetensors", {"x": [0, 0, 0]})
    (snapshots / "latest").write_text("step-1.safetensors\n")
    check("the latest snapshot of a folder is listed", "x" in run(tool, "inspect", snapshots).stdout)
    (snapshots / "step-1.safetensors").rename(folder / "elsewhere")
    (snapshots / "step-1.safetensors").symlink_to("../elsewhere")
    found = run(tool, "inspect", snapshots)
    check("a snapshot that is a link is refused", found.returncode == 1 and "one where none is followed" in found.stderr, found)
    (snapshots / "latest").unlink()
    os.mkfifo(snapshots / "latest")
    for path in (snapshots, snapshots / "latest"):
        found = run(tool, "inspect", path)
        check("nothing waits for a pipe", found.returncode == 1 and found.stderr.count("\n") == 1, found)
    check("a missing file is one sentence", run(tool, "inspect", folder / "none").stderr.count("\n") == 1)


def inspect_recordings(tool, write_recording, folder):
    large = folder / "large.reel"
    run(write_recording, large, 700000)
    status, output, seconds, kilobytes = measured(tool, "inspect", large)
    check("a large recording is summed up in little memory", status == 0 and os.path.getsize(large) > 40 * 10**6 and "1 tensors with NaN" in output
          and kilobytes < MOST_KILOBYTES, (os.path.getsize(large), output, kilobytes))
    found = json.loads(run(tool, "inspect", large, "--json").stdout)
    check("its kinds of ops add up", found["ops"] == sum(found["kinds"].values()) and found["ops"] > 350000 and found["complete"], found)
    with open(large, "rb") as file:
        content = file.read(200_000)  # all of it would be in the memory of the processes that this one starts
    cut = folder / "cut.reel"
    cut.write_bytes(content)
    status, output, _, kilobytes = measured(tool, "inspect", cut)
    check("of a truncated recording what is there is summed up", status == 0 and 0 < int(re.search(r"(\d+) ops", output).group(1)) < found["ops"]
          and kilobytes < MOST_KILOBYTES, (output, kilobytes))
    refused_badly = 0
    for place in range(4096 + 16, 4096 + 16 + 400, 7):
        hostile = bytearray(content)
        hostile[place:place + 8] = b"\xff" * 8
        cut.write_bytes(hostile)
        status, output, _, kilobytes = measured(tool, "inspect", cut)
        if not (status in (0, 1) and kilobytes < MOST_KILOBYTES and (status == 0 or output.count("\n") == 1)):
            check(f"a recording that is damaged at byte {place}", False, (status, output, kilobytes))
            refused_badly += 1
    check("damaged recordings are refused or read in little memory", refused_badly == 0, f"{refused_badly} were not")


def print_hostile_names(tool, folder):
    """A terminal obeys escape sequences, and a reader believes text that runs backwards."""
    hostile = "\x1b]0;owned\x07\u202e\u009b2J"
    folder = folder / f"names{hostile}"
    folder.mkdir()
    tensors, other, empty = folder / "a.safetensors", folder / "b.safetensors", folder / "c.reel"
    safetensors(tensors, {hostile: [1, 2]})
    safetensors(other, {hostile: [1, 3]})
    empty.write_bytes(b"REELREC1")
    odd = Path(os.fsdecode(os.fsencode(folder) + b"/\xff.safetensors"))
    safetensors(odd, {"x": [1]})
    with zipfile.ZipFile(folder / "d.npz", "w") as archive:
        archive.writestr(hostile, b"text")
    for command in (["inspect", tensors], ["inspect", tensors, "--json"], ["inspect", tensors, other], ["inspect", tensors, other, "--json"],
                    ["inspect", odd], ["inspect", folder / "none"], ["inspect", folder / "d.npz"], ["inspect", empty], ["debug", empty],
                    ["diff", empty, empty], ["report", empty], ["trace", empty], ["plot", folder],
                    ["convert", tensors, folder / "e.npz"], ["convert", odd, folder / "e.npy", "--json"], ["convert", tensors, folder / "f.txt"], [hostile]):
        found = subprocess.run([str(tool)] + [os.fsencode(word) for word in command], capture_output=True, timeout=60, check=False)
        printed = (found.stdout + found.stderr).decode(errors="surrogateescape")
        check(f"{command[0]} {len(command)} prints no control characters and only UTF-8", printed and found.returncode >= 0
              and not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\udc80-\udcff]", printed), (command, found))
        if "--json" in command:
            check("and JSON", json.loads(printed) is not None, printed)


def convert(tool, folder):
    plain = folder / "plain.safetensors"
    found = run(tool, "convert", plain, folder / "plain.npz")
    check("safetensors become npz", found.returncode == 0 and "2 tensors" in found.stdout, found)
    found = run(tool, "inspect", plain, folder / "plain.npz")
    check("the tensors stay the same", found.returncode == 0, found)
    check("and back", run(tool, "convert", folder / "plain.npz", folder / "back.safetensors").returncode == 0)
    found = run(tool, "convert", plain, folder / "plain.npy")
    check("several tensors are no npy file", found.returncode == 1 and "holds one array" in found.stderr, found)
    found = run(tool, "convert", plain, folder / "plain.txt")
    check("an unknown ending is refused", found.returncode == 1 and ".safetensors, .npz and .npy" in found.stderr, found)


def documents(tool, manual):
    help_text = run(tool, "--help").stdout
    names = re.findall(r"^  ([a-z]+) {2,}[A-Z]", help_text[help_text.index("Subcommands"):], re.M)
    text = re.sub(r"\\f.", "", Path(manual).read_text()).replace("\\-", "-")
    scripts = {shell: run(tool, "completion", shell).stdout for shell in ("bash", "zsh")}
    check("there are verbs", len(names) >= 9, names)
    for name in names:
        options = set(re.findall(r"--[a-z-]+", run(tool, name, "--help").stdout)) - {"--help"}
        missing = [option for option in options if option not in text]
        check(f"the manual page has {name} and its options", re.search(rf"^\.BR? {name}\b", text, re.M) and not missing, missing)
        for shell, script in scripts.items():
            check(f"completion of {name} for {shell}", name in script and all(option in script for option in options))
    check("bash reads its script", subprocess.run(["bash", "-n"], input=scripts["bash"], text=True, check=False).returncode == 0)
    completed = run("bash", "-c", scripts["bash"] + "COMP_WORDS=(reel inspect --st); COMP_CWORD=2; _reel; echo \"${COMPREPLY[@]}\"")
    check("bash completes an option", completed.stdout.strip() == "--statistics", completed)


def main():
    tool, manual, write_recording = Path(sys.argv[1]).absolute(), sys.argv[2], Path(sys.argv[3]).absolute()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for kind in (resource.RLIMIT_AS, resource.RLIMIT_FSIZE):  # of sparse files of 100 GB
        resource.setrlimit(kind, (resource.getrlimit(kind)[1],) * 2)
    with tempfile.TemporaryDirectory(prefix="reel_files_") as name:
        folder = Path(name)
        inspect(tool, folder)
        inspect_recordings(tool, write_recording, folder)
        convert(tool, folder)
        print_hostile_names(tool, folder)
        documents(tool, manual)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
