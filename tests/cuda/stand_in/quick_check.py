"""quick_check.py ROOT BUILD ARCHITECTURES: fills a folder with the programs of BUILD, whose kernels are for ARCHITECTURES, as
tools/gpu-check --prebuild does, and runs tools/gpu-check --quick from there on the stand-in for a GPU; then with folders that it
must refuse."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
root, build, architectures = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3].split(",")
sys.path.insert(0, str(root / "tools/setup"))

from gpu_check import programs  # noqa: E402
from gpu_check.quick import Done  # noqa: E402

failures = []


def check(is_true, what):
    if not is_true:
        failures.append(what)
        print(f"FAILED: {what}")


def quick(folder, out, *more):
    return subprocess.run([root / "tools/gpu-check", "--quick", "--stand-in", "--prebuilt", folder, "--out", out, *more],
                          capture_output=True, text=True, check=False)


def gives_verdict(folder, out):
    # Before all rows of the op table, which takes longer.
    library = programs.hash_of(folder / programs.MODULE, folder / programs.LIBRARY)
    out.mkdir()
    Done(out / "done.json", library).add("op table, all rows", "7 passed")
    done = quick(folder, out)
    print(done.stdout)
    check(done.returncode == 0, f"it exits with {done.returncode}: {done.stderr}")
    report = (out / "report.txt").read_text()
    check(report.rstrip().splitlines()[-1] == "There was no GPU: nothing ran on one.", "it says that there was no GPU")
    for step in ("take what was built elsewhere", "op table, one of", "a sample trained", "a graph recorded", "ten figures",
                 "calls on the stand-in "):
        check(any(step in line and " ok " in line for line in report.splitlines()), f"the step '{step}' is well")
    check("; 0 kinds of calls break a rule" in report, "no call breaks a rule")
    check("gpu-check --quick: all is well" in report, "the last lines say that all is well")
    check("in an earlier call: 7 passed" in done.stdout, "it goes on from what has passed")


def keeps_what_passed(place):
    file = place / "done.json"
    Done(file, "one").add("a step", "7 passed")
    check(Done(file, "one").result_of("a step") == "7 passed", "what has passed is kept")
    check(Done(file, "another").result_of("a step") is None, "with another library nothing has passed")
    file.write_text("{")
    check(Done(file, "one").steps == {}, "of a file that was cut off nothing has passed")


def refuses(folder, out):
    def fault_is(what):
        done = quick(folder, out)
        check(done.returncode == 1 and "FAILED" in done.stdout and what in done.stdout, f"it says '{what}': {done.stdout}")
    module = (folder / programs.MODULE).read_bytes()
    (folder / programs.MODULE).write_bytes(module[:-1000])
    fault_is("is not the one that the folder was filled with; copy it again")
    (folder / programs.MODULE).write_bytes(module)
    (folder / programs.GRAPH).unlink()
    fault_is(f"lacks {programs.GRAPH}; copy it again")
    label = (folder / programs.LABEL).read_text()
    (folder / programs.LABEL).write_text(label[:10])
    fault_is("cannot be read")
    (folder / programs.LABEL).unlink()
    fault_is("it is filled by tools/gpu-check --prebuild")


def compares_devices():
    label = {"architectures": ["80", "90"], "toolkit": [13, 0]}

    def fault(capability, driver):
        try:
            programs.check_device(label, capability, driver)
        except programs.Unusable as error:
            return str(error)
        return ""
    for capability in ((8, 0), (8, 9), (9, 0), None):
        check(fault(capability, (13, 0)) == "", f"kernels for 80 and 90 run on {capability}")
    for capability in ((7, 5), (10, 0), (12, 0)):
        check("fill the folder with --gpu-architectures" in fault(capability, (13, 0)), f"there are none for {capability}")
    check(fault((9, 0), (13, 2)) == fault((9, 0), (14, 0)) == "", "newer drivers run it")
    check("install a newer driver" in fault((9, 0), (12, 9)), "an older driver is refused")


with tempfile.TemporaryDirectory() as name:
    place = Path(name)
    folder = place / "prebuilt"
    programs.fill(folder, root, build, architectures)
    check(json.loads((folder / programs.LABEL).read_text())["architectures"] == architectures, "the label is there")
    compares_devices()
    keeps_what_passed(place)
    gives_verdict(folder, place / "out")
    refuses(folder, place / "refused")
sys.exit(1 if failures else 0)
