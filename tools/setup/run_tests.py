#!/usr/bin/env python3
"""Runs the tests of a built Meson directory; the last line says "N passed, N failed, N skipped".

Meson's list of tests has two kinds: those of suite "catch" are Catch2 programs, and each of their test cases
counts; any other is one test, skipped if it exits with 77 (the reason is then its last line of output).
With patterns only the programs are needed, and started, whose names or test cases they match. --build builds them: first what
needs no CUDA kernels, whose tests then run before the others are built.
A test case is skipped if it prints a line "REEL-SKIP: reason" to std::cout. What a passed one of a Catch2 program
prints there is shown if a pattern is the program's whole name. Tests of suite "cuda" want a GPU, those of suite
"kernels" depend on the instruction set that the CPU's kernels use, and those of suite "seeded" read REEL_SEED.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import functools
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

TEST_CASE = re.compile(r'\bTEST_CASE\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+)')
SKIP_LINE = re.compile(r"^\s*REEL-SKIP:\s*(.*?)\s*$", re.MULTILINE)
OUTPUT_LINES = 60  # how much of a failed test's output is shown
FIRST_LINES = 6  # how much of what went wrong is shown at once


@dataclasses.dataclass
class Result:
    program: str
    name: str
    status: str  # "passed", "failed" or "skipped"
    lines: list  # what went wrong, or why the test was skipped
    seconds: float = 0.0
    printed: str = ""
    variant: str = ""  # on which instruction set, with which seed

    def title(self):
        title = self.name if self.name == self.program else f"{self.program}: {self.name}"
        return f"{title} ({self.variant})" if self.variant else title


def last_lines(text, count=OUTPUT_LINES):
    lines = text.strip().splitlines()
    cut = [f"… ({len(lines) - count} lines before)"] if len(lines) > count else []
    return cut + lines[-count:]


def escaped(name):
    """What Catch2 takes for a name; backslashes take the meaning from its own signs."""
    return re.sub(r'([\\,\["])', r"\\\1", name)


def introspect(what, directory):
    return json.loads(subprocess.check_output(["meson", "introspect", f"--{what}", directory]))


class Targets:
    """What a build directory can build, as tests need it."""

    def __init__(self, root, directory):
        self.directory = directory
        self.targets = {target["id"]: target for target in introspect("targets", directory)}
        # The library opens these when they are first needed.
        self.modules = [target for target in self.targets.values() if target["type"] == "shared module" and
                        target["defined_in"] == os.path.join(root, "lib", "meson.build")]

    def has_case(self, test, patterns):
        """Whether the name of a test case in the sources of a Catch2 program contains one of the patterns."""
        sources = [source for identifier in test["depends"] for part in self.targets[identifier]["target_sources"]
                   for source in part.get("sources", ())]
        for source in sources:
            with open(source, errors="replace") as file:
                names = ["".join(re.findall(r'"((?:[^"\\]|\\.)*)"', case)) for case in TEST_CASE.findall(file.read())]
            if any(pattern in name.replace('\\"', '"').lower() for pattern in patterns for name in names):
                return True
        return False

    def needed(self, tests):
        """The files that Ninja has to build for the tests."""
        words = {os.path.join(self.directory, word) for test in tests
                 for text in (*test["cmd"], *test["env"].values()) for word in text.split(":")}
        wanted = {identifier for test in tests for identifier in test["depends"]}
        return sorted({os.path.relpath(target["filename"][0], self.directory) for target in self.targets.values()
                       if target["id"] in wanted or not words.isdisjoint(target["filename"])} |
                      {os.path.relpath(module["filename"][0], self.directory) for module in self.modules})


class Launchers:
    """Scripts that run a build directory's programs through a command, such as an emulator of their processor."""

    def __init__(self, command, directory):
        self.command = command
        self.directory = directory
        self.folder = tempfile.TemporaryDirectory()
        targets = introspect("targets", directory)
        self.built = {target["id"] for target in targets if all(map(os.path.exists, target["filename"]))}
        self.programs = {file for target in targets if target["type"] == "executable" for file in target["filename"]}

    def launched(self, tests):
        """Those of the tests whose programs are all built, with a script in the place of each program."""
        return [{**test, "cmd": [self.script_of(word) for word in test["cmd"]]} for test in tests
                if test["depends"] and self.built.issuperset(test["depends"])]

    def script_of(self, word):
        program = os.path.join(self.directory, word)
        if program not in self.programs:
            return word
        path = os.path.join(self.folder.name, os.path.basename(program))
        with open(path, "w") as file:
            file.write(f'#!/bin/sh\nexec {self.command} {shlex.quote(program)} "$@"\n')
        os.chmod(path, 0o755)
        return path


class Runner:
    def __init__(self, root, directory, patterns, suites=(), other_suites=(), seconds=None, launcher=None,
                 has_gpu=True):
        self.root = root
        self.directory = os.path.join(root, directory)
        self.launchers = Launchers(launcher, self.directory) if launcher else None
        self.patterns = [pattern.lower() for pattern in patterns]
        self.suites = suites
        self.other_suites = other_suites
        self.has_gpu = has_gpu
        self.end = time.monotonic() + seconds if seconds else None

    @functools.cached_property
    def targets(self):
        return Targets(self.root, self.directory)

    def tests(self):
        """Meson's tests that may contain something the patterns ask for."""
        tests = introspect("tests", self.directory)
        if self.launchers:
            tests = self.launchers.launched(tests)
        return [test for test in tests if
                all(self.in_suite(test, suite) for suite in self.suites) and
                not any(self.in_suite(test, suite) for suite in self.other_suites) and
                (self.named(test["name"]) or self.is_catch(test) and self.targets.has_case(test, self.patterns))]

    def instruction_sets(self):
        """The values of REEL_INSTRUCTION_SET that the library takes on this processor, from the smallest set."""
        program = os.path.join(self.directory, "tools", "reel")

        def is_taken(name):
            return subprocess.run([program, "devices"], env={**os.environ, "REEL_INSTRUCTION_SET": name},
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
        names = [name for name in ("baseline", "avx2", "avx512") if is_taken(name)]
        if not names:
            sys.exit(f"{program} devices shows no instruction set")
        return names

    def on_each_instruction_set(self, tests):
        """Adds those of suite "kernels" on each set but the largest, which is used anyway."""
        return tests + [self.varied(test, name, {"REEL_INSTRUCTION_SET": name,
                                                 # The kernels that libtorch would use on such a processor.
                                                 "ATEN_CPU_CAPABILITY": "default" if name == "baseline" else name})
                        for name in self.instruction_sets()[:-1] for test in tests if self.in_suite(test, "kernels")]

    def with_seeds(self, tests, count):
        """Those of suite "seeded" with each of the seeds 1 to `count`, the others once."""
        return [varied for test in tests for varied in
                ([self.varied(test, f"seed {seed}", {"REEL_SEED": str(seed)}) for seed in range(1, count + 1)]
                 if self.in_suite(test, "seeded") else [test])]

    @staticmethod
    def varied(test, variant, environment):
        variants = [test["variant"]] if "variant" in test else []
        return {**test, "env": {**test["env"], **environment}, "variant": ", ".join(variants + [variant])}

    def split(self, tests):
        """The same with each test case of Catch2 programs as a test of its own."""
        parts = []
        for test in tests:
            cases = self.cases_of(test) if self.is_catch(test) else []
            parts += [{**test, "case": case} for case in cases] or [test]
        return parts

    def cases_of(self, test):
        """The names of a Catch2 program's test cases: 3.x lists them in one way, 2.x in another."""
        for options in (["--list-tests", "--verbosity", "quiet"], ["--list-test-names-only"]):
            _, _, output = self.execute(test, options)
            lines = output.splitlines()
            if lines and not lines[0].startswith(("All available", "Matching")):
                return [line.strip() for line in lines if line.strip()]
        return []

    @staticmethod
    def in_suite(test, name):
        return any(suite.split(":")[-1] == name for suite in test["suite"])

    @classmethod
    def is_catch(cls, test):
        return cls.in_suite(test, "catch")

    def named(self, name):
        return not self.patterns or any(pattern in name.lower() for pattern in self.patterns)

    def wants_absent_gpu(self, test):
        return not self.has_gpu and self.in_suite(test, "cuda")

    def build_groups(self, tests):
        """The tests that need no CUDA kernels, which compile for long, and the others."""
        has_kernels = [any(target.startswith("cuda/") for target in self.targets.needed([test])) for test in tests]
        groups = [[test for test, has in zip(tests, has_kernels) if has == later] for later in (False, True)]
        return [group for group in groups if group]

    def build(self, tests):
        self.build_targets(self.targets.needed([test for test in tests if not self.wants_absent_gpu(test)]))

    def build_targets(self, targets):
        script = 'root=$1; source "$root/tools/setup/build.sh"; build_targets "${@:2}"'
        directory = os.path.relpath(self.directory, self.root)
        if subprocess.run(["bash", "-c", script, "build", self.root, directory, *targets]).returncode:
            sys.exit(1)

    def run(self, test):
        if self.wants_absent_gpu(test):
            return [Result(test["name"], test["name"], "skipped", ["wants a GPU; it was not built"])]
        results = self.run_catch(test) if self.is_catch(test) else self.run_plain(test)
        for result in results:
            result.variant = test.get("variant", "")
        return results

    def execute(self, test, arguments=()):
        """Returns (how it ended: "" if with status 0, exit status, output)."""
        # Meson's limit is meant for one test; a Catch2 program holds many, and sanitizers slow them down.
        limit = 10 * test["timeout"] if test["timeout"] and test["timeout"] > 0 else None
        if self.end:
            left = self.end - time.monotonic()
            if left <= 0:
                return "was not run: the time was up", 124, ""
            limit = min(limit or left, left)
        with tempfile.TemporaryFile() as output:
            try:
                process = subprocess.Popen(
                    test["cmd"] + list(arguments), cwd=test["workdir"] or self.directory,
                    env={**os.environ, **test["env"]}, stdin=subprocess.DEVNULL, stdout=output,
                    stderr=subprocess.STDOUT)
            except OSError as error:
                return f"could not be started: {error}", 127, ""
            try:
                status = process.wait(limit)
                end = f"exited with status {status}" if status else ""
                if status < 0:
                    end = f"was stopped by {signal.Signals(-status).name}"
            except subprocess.TimeoutExpired:
                process.kill()
                status = process.wait()
                end = f"was stopped after {limit:.3g} s"
            output.seek(0)
            return end, status, output.read().decode(errors="replace")

    def run_plain(self, test):
        name = test["name"]
        start = time.monotonic()
        end, status, output = self.execute(test)
        seconds = time.monotonic() - start
        if status == 0:
            return [Result(name, name, "passed", [], seconds)]
        if status == 77:
            return [Result(name, name, "skipped", last_lines(output, 1)[-1:] or ["no reason given"], seconds)]
        return [Result(name, name, "failed", [end] + last_lines(output), seconds)]

    def run_catch(self, test):
        program = test["name"]
        selection = []
        if "case" in test:
            selection = [escaped(test["case"])]
        elif not self.named(program):
            # One argument: Catch2 reads commas as "or".
            selection = [",".join(f"*{escaped(pattern)}*" for pattern in self.patterns)]
        with tempfile.TemporaryDirectory() as directory:
            # To a file, since what tests print to stdout through printf would end up inside the XML.
            report = os.path.join(directory, "report.xml")
            end, _, output = self.execute(test, ["-r", "xml", "-d", "yes", "-o", report] + selection)
            text = ""
            if os.path.exists(report):
                with open(report, errors="replace") as file:
                    text = file.read()
        results, running, complete = self.read_report(program, text)
        if complete and not results and not running:
            if selection:
                return []
            end = end or "contains no test case"
        elif not complete:
            end = end or "ended before its last test case"
        elif end.startswith("exited") and any(result.status == "failed" for result in results):
            end = ""  # the status only repeats that a test case failed
        if end and running:
            lines = [f"{program} {end} during this test case"] + last_lines(output)
            results.append(Result(program, running, "failed", lines))
        elif end and results and results[-1].status == "failed":
            results[-1].lines += [f"{program} {end}; the test cases after this one did not run"] + last_lines(output)
        elif end:
            after = ""
            if results:
                after = " after its last test case" if complete else f" after {results[-1].name}"
            results.append(Result(program, program, "failed", [f"{program} {end}{after}"] + last_lines(output)))
        return results

    def read_report(self, program, text):
        """Returns (results, name of the test case that had not ended or None, whether the report is complete)."""
        parser = ElementTree.XMLPullParser(["start", "end"])
        results, running, depth, began = [], None, 0, False
        try:
            parser.feed(text)
            events = list(parser.read_events())
        except ElementTree.ParseError:
            events = list(parser.read_events())
        for event, element in events:
            began = True
            depth += 1 if event == "start" else -1
            if element.tag == "TestCase":
                if event == "start":
                    running = element.get("name")
                else:
                    running = None
                    results.append(self.read_case(program, element))
        return results, running, began and depth == 0

    def read_case(self, program, case):
        outcome = case.find("OverallResult")
        output = "".join((outcome.findtext(tag) or "") for tag in ("StdOut", "StdErr"))
        seconds = float(outcome.get("durationInSeconds", 0))
        name = case.get("name").strip()
        if outcome.get("success") != "true":
            printed = [f"printed: {line}" for line in last_lines(output)]
            return Result(program, name, "failed", self.describe(case) + printed, seconds)
        reasons = SKIP_LINE.findall(output) + [(skip.text or "").strip() for skip in case.iter("Skip")]
        if reasons:
            return Result(program, name, "skipped", [reasons[0] or "no reason given"], seconds)
        printed = (outcome.findtext("StdOut") or "").strip() if program.lower() in self.patterns else ""
        return Result(program, name, "passed", [], seconds, printed)

    def describe(self, element, sections=()):
        """The failures in a test case or section, as lines."""
        lines = []
        messages = []
        for child in element:
            text = (child.text or "").strip()
            if child.tag == "Section":
                lines += self.describe(child, sections + (child.get("name").strip(),))
            elif child.tag in ("Info", "Warning"):
                messages.append(f"    {child.tag.lower()}: {text}")
            elif child.tag in ("Expression", "Exception", "Failure", "FatalErrorCondition"):
                if child.get("success") != "true":
                    lines += self.describe_failure(child, text, sections) + messages
                messages = []
        return lines

    def describe_failure(self, failure, text, sections):
        place = f"{self.source(failure.get('filename', '?'))}:{failure.get('line', '?')}"
        lines = [f"{place}: {failure.tag.lower()}: {text}"]
        if failure.tag == "Expression":
            original, expanded = (failure.findtext(tag, "").strip() for tag in ("Original", "Expanded"))
            lines = [f"{place}: {failure.get('type')}({original})"]
            crash = failure.find("FatalErrorCondition")
            if crash is not None:
                lines = [f"after {place}: {(crash.text or '').strip()}"]
            elif expanded and expanded != original:
                lines.append(f"    is: {expanded}")
            lines += [f"    threw: {(thrown.text or '').strip()}" for thrown in failure.findall("Exception")]
        elif failure.tag == "Exception":
            lines = [f"{place}: threw: {text}"]
        elif failure.tag == "FatalErrorCondition":
            lines = [f"after {place}: {text}"]
        return lines + ([f"    in section: {' > '.join(sections)}"] if sections else [])

    def source(self, path):
        """Compilers name a file as seen from the build directory."""
        full = os.path.normpath(os.path.join(self.directory, path))
        return os.path.relpath(full, self.root) if os.path.exists(full) else path


def count_of(results):
    counts = collections.Counter(result.status for result in results)
    return ", ".join(f"{counts[status]} {status}" for status in ("passed", "failed", "skipped")), counts


def run_all(runner, tests):
    results = []

    def run(test):
        start = time.monotonic()
        return test, runner.run(test), time.monotonic() - start

    def record(outcome):
        test, found, seconds = outcome
        results.extend(found)
        line, counts = count_of(found)
        if found:
            name = ": ".join(test[key] for key in ("name", "case") if key in test)
            name += f" ({test['variant']})" if "variant" in test else ""
            print(f"{'FAIL' if counts['failed'] else 'ok':4}  {name}: {line} ({seconds:.1f} s)", flush=True)
        # Also here, where the beginning is in view long before the whole is listed, or if the run is then interrupted.
        for result in found:
            if result.status == "failed":
                print("\n".join(f"      {text[:200]}" for text in [result.name] + result.lines[:FIRST_LINES]), flush=True)

    # Each program may use every core itself, so more at a time would only get in each other's way.
    at_a_time = min(len(os.sched_getaffinity(0)), 8)
    with concurrent.futures.ThreadPoolExecutor(at_a_time) as pool:
        parallel = [pool.submit(run, test) for test in tests if test["is_parallel"]]
        try:
            for future in concurrent.futures.as_completed(parallel):
                record(future.result())
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            sys.exit("interrupted")
    for test in tests:
        if not test["is_parallel"]:
            record(run(test))
    return sorted(results, key=lambda result: (result.program, result.variant, result.name))


def read_expected_skips(path):
    with open(path) as file:
        return {line.strip() for line in file} - {""}


def report_skipped(skipped, tests):
    print("\nSkipped:")
    for result in skipped:
        print(f"  {result.title()}: {result.lines[0]}")
    of_gpu = {test["name"] for test in tests if Runner.in_suite(test, "cuda")}
    count = sum(result.program in of_gpu for result in skipped)
    if count:
        print(f"{count} of these want{'s' if count == 1 else ''} a GPU: tools/gpu-check runs "
              f"{'it' if count == 1 else 'them'} on a machine that has one.")


def write_report(path, results):
    with open(path, "w") as file:
        json.dump([{**dataclasses.asdict(result), "title": result.title()} for result in results], file)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--slow", action="store_true")
    parser.add_argument("--suite", action="append", default=[], help="only the tests of this suite")
    parser.add_argument("--without-suite", action="append", default=[], help="none of the tests of this suite")
    parser.add_argument("--split", action="store_true", help="each test case of Catch2 programs in a process of its own")
    parser.add_argument("--each-instruction-set", action="store_true",
                        help="those of suite kernels also on each smaller instruction set of the processor")
    parser.add_argument("--seeds", type=int, help="those of suite seeded with each seed from 1 to this")
    parser.add_argument("--seconds", type=float, help="stop what still runs after so many, and run no more")
    parser.add_argument("--launcher", metavar="COMMAND",
                        help="run the programs through this command, and only the tests whose programs are all built")
    parser.add_argument("--without-gpu", action="store_true", help="skip those of suite cuda without starting them")
    parser.add_argument("--build", action="store_true", help="build what the tests need before they run")
    parser.add_argument("--json", help="also write what became of each test to this file")
    parser.add_argument("root")
    parser.add_argument("directory")
    parser.add_argument("patterns", nargs="*")
    arguments = parser.parse_args()
    runner = Runner(arguments.root, arguments.directory, arguments.patterns, arguments.suite, arguments.without_suite,
                    arguments.seconds, arguments.launcher, not arguments.without_gpu)
    tests = runner.tests()
    if arguments.each_instruction_set:
        if arguments.build:
            runner.build_targets(["tools/reel"])
        tests = runner.on_each_instruction_set(tests)
    if arguments.seeds:
        tests = runner.with_seeds(tests, arguments.seeds)
    results = []
    for group in runner.build_groups(tests) if arguments.build else [tests]:
        if arguments.build:
            runner.build(group)
        results += run_all(runner, runner.split(group) if arguments.split else group)
    failed = not results or any(result.status == "failed" for result in results)

    for result in results:
        if result.printed:
            print(f"\n{result.printed}")
    for result in results:
        if result.status == "failed":
            print(f"\nFAILED  {result.title()}")
            for line in result.lines:
                print("  " + line.replace("\n", "\n        "))
    skipped = [result for result in results if result.status == "skipped"]
    if skipped:
        report_skipped(skipped, tests)
    if arguments.json:
        write_report(arguments.json, results)
    if arguments.slow:
        print("\nSlowest:")
        for result in sorted(results, key=lambda result: -result.seconds)[:5]:
            print(f"  {result.seconds:7.2f} s  {result.title()}")
    print()
    if not results:
        print(f"no test matches {' '.join(arguments.patterns)}" if arguments.patterns else "there are no tests")
    if not arguments.patterns:
        suites_of = {test["name"]: [suite.split(":")[-1] for suite in test["suite"]] for test in tests}
        expected = read_expected_skips(os.path.join(arguments.root, "tests", "expected_skips.txt"))
        for result in skipped:
            suites = suites_of.get(result.program, ())
            if not {result.name, *(f"suite {suite}" for suite in suites)} & expected:
                failed = True
                print(f"skipped but not expected: {result.title()} (not in tests/expected_skips.txt)")
    print(count_of(results)[0])
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
