"""Runs the op table on the GPU op by op, each in a process of its own: a kernel that goes astray takes the device from all
that comes after it in the same process.
"""

import collections
import concurrent.futures
import os
import subprocess

import run_tests


def op_names(build):
    output = subprocess.run([build / "tests/ops/op_coverage", "--names"], check=True, capture_output=True, text=True)
    return output.stdout.split()


def failures(results):
    """What is wrong with each failed one."""
    return [next((line.strip() for line in result.lines if "is:" in line or "stopped" in line), result.lines[0])
            for result in results if result.status == "failed"]


def one_by_one(root, build, seconds, log):
    """Returns (a line about each op that fails, how many were run)."""
    runner = run_tests.Runner(root, build, [], ["cuda", "catch"], seconds=seconds)
    tests = [test for test in runner.tests() if "op_table" in test["name"]]

    def run(op):
        results = []
        for test in tests:
            results += runner.run_catch({**test, "env": {**test["env"], "REEL_ROWS": op + "("}})
        return op, results

    lines, count = [], 0
    with concurrent.futures.ThreadPoolExecutor(max(1, min(12, os.cpu_count() or 2))) as pool, open(log, "a") as file:
        for op, results in pool.map(run, op_names(build)):
            count += 1
            found = failures(results)
            for result in results:
                if result.status == "failed":
                    print(f"\n{op}: {result.name}", *result.lines[:40], sep="\n  ", file=file)
            if found:
                wrong = collections.Counter(found).most_common(1)[0][0]
                lines.append(f"  {op}: {len(found)} of {len(results)} test cases fail: {wrong[:160]}")
    return lines, count
