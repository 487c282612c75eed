"""Runs tests under compute-sanitizer, several at a time, each test case by itself."""

import concurrent.futures
import os
import re

from run_tests import escaped

from . import machine, steps

# The sanitizer keeps one processor busy for each.
AT_A_TIME = max(1, min(6, (os.cpu_count() or 2) // 2))

TOOLS = {
    # NVIDIA's libraries make failing calls to probe the device; these are no errors.
    "memcheck": ["--leak-check", "no", "--report-api-errors", "no"],
    # Only reel's kernels are checked, not those of NVIDIA's libraries.
    "racecheck": ["--kernel-name", "kns=reel"],
}


CLEAN = re.compile(r"(ERROR SUMMARY: 0 errors|RACECHECK SUMMARY: 0 hazards)")


def environment_of(test):
    """Beyond a block that is cut out of a larger one no tool sees an error; graphs cannot do without those.

    Under a tool each of the op table's 942,000 allocations takes milliseconds: a twentieth of its rows is run.
    """
    return {"REEL_CUDA_NO_CACHE": "1", "REEL_ROW_STEP": "20"} if "op_table" in test["name"] else {}


def program():
    root = machine.toolkit_root()
    return machine.find_program("compute-sanitizer", root / "bin", root / "compute-sanitizer")


def watch(runner, tool, cases, folder, limit):
    """cases: tests as Meson tells them, each with one "case". Returns an Outcome for all of them."""
    step = f"{tool} of the tests on the GPU"
    sanitizer = program()
    if not sanitizer or not cases:
        note = "no test ran on a GPU" if sanitizer else "there is no compute-sanitizer"
        return steps.Outcome(step, "skipped", note=note)
    command = [sanitizer, "--tool", tool, "--error-exitcode", "99", "--print-limit", "10", *TOOLS[tool]]
    parts = [folder / f"{tool}-{number}.part" for number in range(len(cases))]
    with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
        outcomes = list(pool.map(
            lambda test, part: runner.run(test["case"], [*command, *test["cmd"], escaped(test["case"])], part, limit,
                                          {**test["env"], **environment_of(test)}), cases, parts))
    with open(folder / f"{tool}.txt", "wb") as log:
        for part in parts:
            if part.is_file():
                log.write(part.read_bytes())
                part.unlink()
    total = steps.Outcome(step, "ok", max(outcome.seconds for outcome in outcomes))
    if any("Device not supported" in outcome.output for outcome in outcomes):
        total.status, total.note = "skipped", "compute-sanitizer does not support the device on this machine"
        return total
    for outcome in outcomes:
        # A test that fails by itself is reported where it runs without the tool.
        if outcome.status == "FAILED" and CLEAN.search(outcome.output):
            outcome.status = "ok"
    notes = [f"{sum(outcome.status == 'ok' for outcome in outcomes)} of {len(cases)} test cases are clean"]
    for status in ("FAILED", "cut off"):
        names = [outcome.step for outcome in outcomes if outcome.status == status]
        if names:
            total.status = status if total.status != "FAILED" else total.status
            notes.append(f"{status}: {', '.join(names)}")
    total.note = "; ".join(notes)
    failed = next((outcome for outcome in outcomes if outcome.status == "FAILED"), None)
    total.output = failed.output if failed else ""
    return total
