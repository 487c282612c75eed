#!/usr/bin/env python3
"""Changes operators, conditions and statements of the library's sources, one at a time, and lists what their tests miss.

A changed source is compiled into a temporary folder by the command of a built Meson directory and linked there with the
other objects; tests find that library first, through LD_LIBRARY_PATH. So neither the tree nor the directory is written.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import dataclasses
import filecmp
import glob
import json
import os
import random
import re
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # the tree stays as it is
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/setup"))
import run_tests

NEW_PARTS = ("batching", "train", "data", "io", "debug", "dist", "recurrent", "reduce")
# The folders of tests that have another name than that of the library, by the longest path.
TESTS = {"autograd": "tape", "record": "tape", "dispatch": "core", "cpu": "ops", "kernels": "ops",
         "cpu/simd/reduce/element_summary.cpp": "debug", "io/modules/figure_module.cpp": "logging",
         "io/modules/serve_module.cpp": "debug"}
EQUIVALENT = "tests/mutants/equivalent.txt"
SLOW = 60  # seconds; a test case that takes longer is left out
MEMORY, FILE = 8 << 30, 2 << 30  # bytes that a program, and each of its files, may have, unless it raises its limits
SKIPPED = 77  # the status of a program that has left out a part

# Formatted sources have spaces around binary operators, and none before what is part of a type.
SWAPS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+", "*": "/", "/": "*", "%": "/",
         "&&": "||", "||": "&&", "+=": "-=", "-=": "+=", "|": "&", "&": "|", "|=": "&=", "&=": "|="}
OPERATOR = re.compile(r"(?<= )(%s)(?=\s)" % "|".join(map(re.escape, sorted(SWAPS, key=len, reverse=True))))
NEGATION = re.compile(r"(?<![\w)\]=])!(?=[\w(:*])")
CONDITION = re.compile(r"\b(if|while) \(")
TERNARY = re.compile(r" \? ")
# An assignment or a call; what has a type in front is a declaration, which others need.
STATEMENT = re.compile(r"(?:(?<=[;{}:])|(?<=\))|(?<=else))\s*\n[ ]*((?!return|delete|throw|co_|using|else|case|static_assert)"
                       r"[*(]*[\w:.>\[\]*-]+(?:\([^;{}]*\)[\w:.>\[\]()*-]*)?(?: [-+*/|&^%]?= [^;{}]*|\([^;{}]*\)|\+\+|--)?;)"
                       r"|\b(break|continue|return);")
HIDDEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\])+\'|^[ ]*#[^\n]*'
                    r"|^[ ]*(?:template|requires|static_assert|using)\b[^\n]*", re.DOTALL | re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Mutant:
    path: str  # from the root of the tree
    source: str
    begin: int  # of what is replaced in the source
    end: int
    replacement: str

    def text(self):
        return self.source[:self.begin] + self.replacement + self.source[self.end:]

    def line(self):
        return self.source.count("\n", 0, self.begin) + 1

    def folder_of_tests(self):
        parts = self.path.split("/")[1:]
        paths = ("/".join(parts[:count]) for count in range(len(parts), 0, -1))
        return next((TESTS[path] for path in paths if path in TESTS), parts[0])

    def listed(self):
        """The mutant's entry in the list of equivalent ones, without its last line, the reason."""
        first, last = self.source.rfind("\n", 0, self.begin) + 1, self.source.find("\n", self.end)
        old, new = self.source[first:last], self.source[first:self.begin] + self.replacement + self.source[self.end:last]
        return "\n".join([self.path, *(f"- {line.strip()}" for line in old.splitlines()),
                          *(f"+ {line.strip()}" for line in new.splitlines())])

    def entries(self):
        """The entries of the list that it would be equivalent by: its own, and that of all changes of its lines."""
        path, *lines = self.listed().splitlines()
        return {self.listed(), "\n".join([path, *("=" + line[1:] for line in lines if line.startswith("-"))])}


def closing(text, start):
    """The place of the parenthesis that closes the one at `start`."""
    depth = 0
    for place in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return place
    return len(text)


def changes_of(text):
    """Yields (begin, end, replacement) of each change of a source."""
    shown = HIDDEN.sub(lambda found: re.sub(r"[^\n]", "_" if found[0][0] in "\"'R" else " ", found[0]), text)
    for found in OPERATOR.finditer(shown):
        # Texts are joined, too, and have no other operator.
        if found[0] != "+" or "_" not in (shown[found.start() - 2], shown[found.end() + 1]):
            yield found.start(), found.end(), SWAPS[found[0]]
    for found in NEGATION.finditer(shown):
        yield found.start(), found.end(), ""
    for found in CONDITION.finditer(shown):
        begin, end = found.end(), closing(shown, found.end() - 1)
        begin += shown[begin:end].rfind(";") + 1
        if not re.match(r"\s*[\w:<>*&, ]+[\w>*&] \w+ = ", shown[begin:end]):
            space = " " if shown[begin] == " " else ""
            yield from ((begin, end, space + value) for value in (("true", "false") if found[1] == "if" else ("false",)))
    for found in TERNARY.finditer(shown):
        yield found.start(), found.end(), " || true ? "
        if " || " not in shown[shown.rfind("\n", 0, found.start()):found.start()]:
            yield found.start(), found.end(), " && false ? "
    for found in STATEMENT.finditer(shown):
        group = 1 if found[1] else 0
        yield found.start(group), found.end(group), "{}"


def read_equivalent(path):
    """The listed mutants, without their reasons."""
    with open(path, encoding="utf-8") as file:
        blocks = "".join(line for line in file if not line.startswith("#")).strip().split("\n\n")
    for block in filter(None, blocks):
        lines = block.splitlines()
        if lines[-1].startswith(("+ ", "- ", "= ")):
            sys.exit(f"{path}: the entry of {lines[0]} has no reason")
        yield "\n".join(lines[:-1])


class Build:
    """The commands of a built Meson directory."""

    def __init__(self, root, directory):
        self.root, self.directory = root, os.path.join(root, directory)
        edges = json.loads(subprocess.check_output(["ninja", "-C", self.directory, "-t", "compdb", "-x"]))
        commands = {edge["output"]: edge["command"] for edge in edges}
        # Archives are linked whole, so their members may be named instead.
        members = {name: " ".join(word for word in command.split() if word.endswith(".o"))
                   for name, command in commands.items() if name.endswith(".a")}
        self.libraries = {name: " ".join(members.get(word, word) for word in command.split(" "))
                          for name, command in commands.items() if name.startswith("lib/") and " -shared " in command}
        linked = {word for command in self.libraries.values() for word in command.split()}
        self.objects = {}  # by source, from the root: (object, command, the file that the command names)
        for name in linked & {name for name in commands if name.endswith(".o")}:
            named = os.path.normpath(os.path.join(self.directory, shlex.split(commands[name])[-1]))
            sources = [os.path.relpath(named, root)]
            if named.startswith(self.directory + "/"):  # generated, to include the sources of a folder
                with open(named, encoding="utf-8") as file:
                    sources = ["lib/" + source for source in re.findall(r'^#include "(.*\.cpp)"', file.read(), re.MULTILINE)]
            for source in sources:
                self.objects.setdefault(source, []).append((name, commands[name], named))

    def compile(self, mutant, command, named, output):
        """Compiles what the command names, with the mutant in the place of its source; returns whether it could."""
        words = shlex.split(command)
        source = os.path.join(self.root, mutant.path)
        changed = os.path.join(os.path.dirname(output), os.path.basename(source))
        with open(changed, "w", encoding="utf-8") as file:
            file.write(f'#line 1 "{os.path.relpath(source, self.directory)}"\n{mutant.text()}')
        words[-1] = changed
        if named != source:
            words[-1] = os.path.join(os.path.dirname(output), os.path.basename(named))
            with open(named, encoding="utf-8") as given, open(words[-1], "w", encoding="utf-8") as file:
                file.write(given.read().replace(f'"{mutant.path.removeprefix("lib/")}"', f'"{changed}"'))
        words[words.index("-o") + 1] = output
        words[words.index("-MF") + 1] = output + ".d"
        words[-1:-1] = ["-w", "-iquote", os.path.relpath(os.path.dirname(source), self.directory)]
        return subprocess.run(words, cwd=self.directory, env={**os.environ, "CCACHE_DISABLE": "1"},
                              stderr=subprocess.DEVNULL).returncode == 0

    def make(self, mutant, folder):
        """Links the libraries that have the mutant into the folder; returns whether it compiles, to other code."""
        changes = {}
        for name, command, named in self.objects[mutant.path]:
            changes[name] = os.path.join(tempfile.mkdtemp(dir=folder), "changed.o")
            if not self.compile(mutant, command, named, changes[name]):
                return False
        if all(filecmp.cmp(os.path.join(self.directory, name), changed, shallow=False) for name, changed in changes.items()):
            return False
        for path in glob.glob(os.path.join(self.directory, "lib/**/*.so*"), recursive=True):
            if os.path.isfile(path):
                link = os.path.join(folder, os.path.relpath(path, self.directory))
                os.makedirs(os.path.dirname(link), exist_ok=True)
                os.symlink(os.readlink(path) if os.path.islink(path) else path, link)
        for name, command in self.libraries.items():
            if not changes.keys().isdisjoint(command.split(" ")):
                output = os.path.join(folder, name)
                os.unlink(output)  # a link to the library without the mutant
                line = " ".join({**changes, name: output}.get(word, word) for word in command.split(" "))
                subprocess.run(line, shell=True, cwd=self.directory, check=True)
        return True


@dataclasses.dataclass
class Step:
    """Test cases of a Catch2 program, or another test, and how long they take."""
    test: dict
    cases: list
    seconds: float

    def failure(self, directory, environment):
        """Runs it; returns nothing if it passes, else what it does."""
        # One argument: Catch2 reads commas as "or".
        cases = ["--abort", ",".join(map(run_tests.escaped, self.cases))] if self.cases else []
        process = subprocess.Popen([*self.test["cmd"], *cases], cwd=self.test["workdir"] or directory,
                                   env={**os.environ, **self.test["env"], **environment}, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            return "" if process.wait(5 * self.seconds + 30) in (0, SKIPPED) else "fails"
        except subprocess.TimeoutExpired:
            return "hangs"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # with what it has started


class Tests:
    """The tests of a folder that pass, or pass and skip a part, without a mutant, and quickly."""

    def __init__(self, root, runner, folder, environment):
        self.steps, left_out = [], []
        for test in runner.tests():
            if any(f"tests/{folder}/" in word for word in test["cmd"]):
                results = runner.run(runner.varied(test, "", environment))
                # A program that says that it skips a part, such as a browser's, has tested the rest.
                statuses = ("passed",) if runner.is_catch(test) else ("passed", "skipped")
                good = [result for result in results if result.status in statuses and result.seconds < SLOW]
                left_out += [result.title() for result in results if result not in good]
                cases = [result.name for result in good] if runner.is_catch(test) else []
                self.steps += [Step(test, cases, sum(result.seconds for result in good))] if good else []
        self.steps.sort(key=lambda step: step.seconds)
        self.cases_of = {}  # a file
        for path in glob.glob(f"{root}/tests/{folder}/**/*.cpp", recursive=True):
            with open(path, encoding="utf-8") as file:
                self.cases_of[os.path.basename(path)] = re.findall(r'TEST_CASE\("((?:[^"\\]|\\.)*)"', file.read())
        print(f"tests/{folder} take {sum(step.seconds for step in self.steps):.0f} s" +
              "".join(f"\n  left out: {title}" for title in left_out), flush=True)

    def first_failure(self, path, directory, environment):
        """First run the cases in files whose names begin as the source's does, then the programs, the quickest first."""
        word = re.split(r"[_.]", os.path.basename(path))[0]
        likely = {case for name, cases in self.cases_of.items() if re.split(r"[_.]", name)[0] == word for case in cases}
        first = [dataclasses.replace(step, cases=[case for case in step.cases if case in likely]) for step in self.steps]
        steps = [step for step in first if step.cases] + self.steps
        for step in steps:
            if does := step.failure(directory, environment):
                return f"{step.test['name']} {does}"
        return ""


class Trial:
    """Makes mutants and runs the tests of their folders on them."""

    def __init__(self, root, directory, folder):
        self.root, self.folder, self.tests = root, folder, {}
        self.build = Build(root, directory)
        self.runner = run_tests.Runner(root, directory, [])

    def environment(self, folder):
        os.mkdir(temporary := os.path.join(folder, "tmp"))
        libraries = {os.path.dirname(os.path.join(folder, name)) for name in self.build.libraries}
        return {"LD_LIBRARY_PATH": ":".join(sorted(libraries)), "TMPDIR": temporary}

    def measure(self, folder):
        if folder not in self.tests:
            os.mkdir(scratch := os.path.join(self.folder, folder))
            self.tests[folder] = Tests(self.root, self.runner, folder, self.environment(scratch))

    def outcome(self, mutant):
        """Returns "killed" if a test fails, else "survived"; None if the mutant does not compile, or is no other code."""
        start = time.monotonic()
        with tempfile.TemporaryDirectory(dir=self.folder, ignore_cleanup_errors=True) as folder:
            os.chmod(folder, 0o755)  # tests become other users
            if not self.build.make(mutant, folder):
                return None
            tests = self.tests[mutant.folder_of_tests()]
            failure = tests.first_failure(mutant.path, self.build.directory, self.environment(folder))
        outcome = "killed" if failure else "survived"
        print(f"{mutant.path}:{mutant.line()}: {outcome} in {time.monotonic() - start:.0f} s" +
              (f": {failure}" if failure else "\n" + mutant.listed()), flush=True)
        return outcome


def run(arguments, trial):
    paths = set()
    for name in (folder.strip("/").removeprefix("lib/") for folder in arguments.folders or NEW_PARTS):
        found = [path for path in trial.build.objects if path.startswith("lib/") and f"/{name}/" in path]
        if not found:
            sys.exit(f"tools/mutate: no shared library has a source of a folder {name} of lib.")
        paths.update(found)
    candidates = []
    for path in sorted(paths):
        with open(os.path.join(trial.root, path), encoding="utf-8") as file:
            text = file.read()
        candidates += [Mutant(path, text, *change) for change in changes_of(text)]
    equivalent = set(read_equivalent(os.path.join(trial.root, EQUIVALENT)))
    for entry in equivalent.difference(*(mutant.entries() for mutant in candidates)):
        if entry.splitlines()[0] in paths:
            print(f"{EQUIVALENT} has a mutant of a line that is no more:\n{entry}")
    random.Random(arguments.seed).shuffle(candidates)
    print(f"{arguments.count} of {len(candidates)} mutants of {len(paths)} sources, seed {arguments.seed}", flush=True)
    counts = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(min(len(os.sched_getaffinity(0)), 8)) as pool:
        while candidates and (missing := arguments.count - counts.total()) > 0:
            some, candidates = candidates[:missing], candidates[missing:]
            left = [mutant for mutant in some if equivalent.isdisjoint(mutant.entries())]
            counts["equivalent"] += len(some) - len(left)
            for folder in sorted({mutant.folder_of_tests() for mutant in left}):
                trial.measure(folder)
            try:
                counts.update(outcome for outcome in pool.map(trial.outcome, left) if outcome)
            except KeyboardInterrupt:
                pool.shutdown(cancel_futures=True)
                raise
    print(f"{counts.total()} mutants: {counts['killed']} killed, {counts['equivalent']} equivalent, {counts['survived']} survived: "
          f"{100 * counts['survived'] / max(counts.total(), 1):.1f} % real holes")
    return 1 if counts["survived"] else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--seed", type=int)
    parser.add_argument("root")
    parser.add_argument("directory")
    parser.add_argument("folders", nargs="*")
    arguments = parser.parse_args()
    if arguments.seed is None:
        arguments.seed = int(subprocess.check_output(["git", "-C", arguments.root, "rev-parse", "--short=8", "HEAD"]), 16)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    for kind, most in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_FSIZE, FILE)):
        resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))
    try:
        with tempfile.TemporaryDirectory(prefix="mutants", ignore_cleanup_errors=True) as folder:
            os.chmod(folder, 0o755)
            sys.exit(run(arguments, Trial(arguments.root, arguments.directory, folder)))
    except KeyboardInterrupt:
        sys.exit("interrupted")


if __name__ == "__main__":
    main()
