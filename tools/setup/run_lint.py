#!/usr/bin/env python3
"""Runs clang-tidy, or a compiler that only looks for warnings, over files of a compile database.

A header is checked through a source that includes it. The last line says how many findings there are in how many files.
"""

import argparse
import concurrent.futures
import copy
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

FOLDERS = ("include", "lib", "cuda", "samples", "tests", "tools")
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<(reel/[^>]+)>)', re.MULTILINE)
# Where tools/python builds, if it has.
PYTHON_MODULE = "build/python/extension"
COUNT = re.compile(r"^\d+ (warning|error)s?( and \d+ errors?)? generated\.$")
HUNK = re.compile(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@")
FINDING = re.compile(r"^(\S[^:\n]*):(\d+):(\d+): (warning|error|fatal error): (.*)$")


class Unit:
    """An entry of the compile database."""

    def __init__(self, entry):
        self.directory = entry["directory"]
        self.path = os.path.normpath(os.path.join(self.directory, entry["file"]))
        words = iter(entry.get("arguments") or shlex.split(entry["command"]))
        self.arguments = []
        for word in words:
            # Precompiled headers are the build's compiler's; files include what they use all the same.
            if word in ("-include", "-o", "-MF", "-MQ", "-MT"):
                next(words)
            elif word not in ("-c", "-MD", "-fpch-preprocess", "-Winvalid-pch", "-fdiagnostics-color=always", entry["file"]):
                self.arguments.append(word)
        while not self.arguments[0].startswith("-"):  # the compiler, and what launches it
            del self.arguments[0]
        self.is_header = "c++-header" in self.arguments
        # The private folder of a precompiled header's target, in which all that uses the header looks for it.
        self.private_folder = self.arguments[0]
        self.folders = [os.path.join(self.directory, word[2:]) for word in self.arguments if word.startswith("-I")]


class Includes:
    """Which of the project's files a source includes, itself or through others."""

    def __init__(self, root):
        self.root = root
        self.direct = {}

    def of(self, unit):
        found, left = set(), [unit.path]
        while left:
            path = left.pop()
            if path not in found:
                found.add(path)
                left += self.included_by(path, unit.folders)
        return found

    def included_by(self, path, folders):
        key = (path, tuple(folders))
        if key not in self.direct:
            with open(path, encoding="utf-8") as file:
                names = [quoted or angled for quoted, angled in INCLUDE.findall(file.read())]
            places = [[os.path.normpath(os.path.join(folder, name)) for folder in (os.path.dirname(path), *folders)]
                      for name in names]
            self.direct[key] = [found for found in (next(filter(os.path.isfile, place), None) for place in places)
                                if found and found.startswith(self.root + "/")]
        return self.direct[key]


def one_by_one(unit, directory):
    """The unit of each source, where a generated file includes nothing but sources."""
    if not unit.path.startswith(directory + "/") or not os.path.isfile(unit.path):
        return [unit]
    with open(unit.path, encoding="utf-8") as file:
        text = file.read()
    sources = [name for name, _ in INCLUDE.findall(text) if name.endswith(".cpp")]
    if not sources or INCLUDE.sub("", text).strip():
        return [unit]
    units = [copy.copy(unit) for _ in sources]
    for one, name in zip(units, sources):
        paths = [os.path.normpath(os.path.join(folder, name)) for folder in unit.folders]
        one.path = next(filter(os.path.isfile, paths), unit.path)
    return units


def entries_of(directory):
    with open(os.path.join(directory, "compile_commands.json")) as file:
        return [one for entry in json.load(file) for one in one_by_one(Unit(entry), directory)]


def read_database(directory):
    units = entries_of(directory)
    generated = [os.path.relpath(unit.path, directory) for unit in units if unit.path.startswith(directory + "/")]
    rules = subprocess.run(["ninja", "-C", directory, "-t", "targets", "all"], capture_output=True, text=True)
    generated += re.findall(r"^(\S+\.h): CUSTOM_COMMAND", rules.stdout, re.MULTILINE)
    result = subprocess.run(["ninja", "-C", directory, *generated], capture_output=True, text=True)
    if rules.returncode != 0 or result.returncode != 0:
        sys.exit(result.stdout + f"tools/lint: Ninja could not generate the sources in {directory}.")
    return [unit for unit in units if not unit.is_header], [unit for unit in units if unit.is_header]


def git(root, *arguments):
    """Git's output, or None if it fails."""
    result = subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True)
    return result.stdout.strip() if result.returncode == 0 else None


def find_base(root, asked):
    """The revision that changes are counted from, or None if there is none."""
    if asked:
        if git(root, "rev-parse", "--verify", "--quiet", asked + "^{commit}") is None:
            sys.exit(f"tools/lint: there is no revision {asked} here (a shallow clone lacks the older ones).")
        return git(root, "merge-base", asked, "HEAD") or asked
    fork = git(root, "merge-base", "origin/main", "HEAD")
    if fork and fork != git(root, "rev-parse", "HEAD"):
        return fork
    return git(root, "rev-parse", "--verify", "--quiet", "HEAD~1^{commit}")


def changed_lines(root, base):
    """The numbers of the lines that differ from a revision, by file; None for all lines of a new file."""
    lines, path = {}, None
    for line in (git(root, "diff", "--unified=0", "--no-color", "--no-ext-diff", "--diff-filter=d", base) or "").splitlines():
        if line.startswith("+++ "):
            path = os.path.join(root, line[len("+++ b/"):])
            lines[path] = set()
        elif match := HUNK.match(line):
            first, count = int(match[1]), int(match[2] or 1)
            lines[path].update(range(first, first + count))
    for name in (git(root, "ls-files", "--others", "--exclude-standard") or "").splitlines():
        lines[os.path.join(root, name)] = None
    return {path: numbers for path, numbers in lines.items() if path.endswith((".h", ".cpp", ".cu")) and
            path.startswith(tuple(f"{root}/{folder}/" for folder in FOLDERS))}


def choose_units(units, includes, files):
    """Few sources that together include all of the files they can; returns (sources, files that none includes)."""
    # Sources compiled several times, as the kernels of each instruction set, are checked as they are compiled first.
    first = {}
    for unit in units:
        first.setdefault(unit.path, unit)
    covered = {path: includes.of(unit) for path, unit in first.items()}
    chosen = [path for path in first if path in files]
    left = set(files).difference(*(covered[path] for path in chosen))
    # The sources with the fewest headers are the quickest, unless they have several of the files.
    while left:
        path = max(first, key=lambda path: (len(covered[path] & left), -len(covered[path])))
        if not covered[path] & left:
            break
        chosen.append(path)
        left -= covered[path]
    return [first[path] for path in chosen], left


class Report:
    """The findings, each once, although a header is read by many sources."""

    def __init__(self, root, files):
        self.root = root
        self.files = files  # the lines that matter, or None for all, by file; None for all files
        self.found = set()
        self.broken = 0

    def lines_of(self, unit, status, output):
        """What a checker printed about findings that are new and asked for."""
        lines, wanted, explained = [], False, False
        for line in output.splitlines():
            match = FINDING.match(line)
            if match:
                explained = True
                path = os.path.normpath(os.path.join(unit.directory, match[1]))
                finding = (path, *match.groups()[1:])
                wanted = finding not in self.found and self.is_asked_for(path, int(match[2]), match[4])
                if wanted:
                    self.found.add(finding)
                    line = path + line[len(match[1]):]
            if wanted and not COUNT.match(line):
                lines.append(line.replace(self.root + "/", ""))
        if status != 0 and not explained:
            self.broken += 1
            lines += [f"{os.path.relpath(unit.path, self.root)} could not be checked:", *output.splitlines()[-20:]]
        return lines

    def is_asked_for(self, path, line, kind):
        # An error of the compiler may be due to a change elsewhere.
        if self.files is None or kind != "warning":
            return path.startswith(self.root + "/")
        return path in self.files and (self.files[path] is None or line in self.files[path])


def check(unit, command):
    result = subprocess.run(command, cwd=unit.directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, errors="replace")
    return unit, result.returncode, result.stdout


def precompile(compiler, headers, folder, report):
    """Compiles the headers that this compiler takes for its own use; returns the files, by private folder."""
    files = {}
    for header in headers:
        file = os.path.join(folder, f"{len(files)}.pch")
        outcome = check(header, [compiler, *header.arguments, header.path, "-o", file])
        for line in report.lines_of(*outcome):
            print(line, flush=True)
        if outcome[1] == 0:
            files[header.private_folder] = file
    return files


def configuration(root, directory, unit):
    """The option that gives a generated source the configuration of the folder that it is generated for."""
    if not unit.path.startswith(directory + "/"):
        return []
    folder = os.path.dirname(os.path.join(root, os.path.relpath(unit.path, directory)))
    while folder != root and not os.path.exists(os.path.join(folder, ".clang-tidy")):
        folder = os.path.dirname(folder)
    return ["--config-file=" + os.path.join(folder, ".clang-tidy")]


def check_all(root, units, command_of, report):
    terminal = sys.stderr.isatty()
    clear = "\r\033[K" if terminal else ""
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        try:
            for done, future in enumerate(concurrent.futures.as_completed([pool.submit(check, unit, command_of(unit)) for unit in units]), 1):
                unit, status, output = future.result()
                lines = report.lines_of(unit, status, output)
                if lines:
                    print(clear, end="", file=sys.stderr, flush=True)
                    print("\n".join(lines), flush=True)
                if terminal:
                    print(f"{clear}[{done}/{len(units)}] {os.path.relpath(unit.path, root)}", end="", file=sys.stderr, flush=True)
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            sys.exit("interrupted")
    print(clear, end="", file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true", help="every source of the compile database, and all headers")
    parser.add_argument("--base", help="the files that differ from this revision")
    parser.add_argument("--at-most", type=int, help="read no more sources than this")
    parser.add_argument("--compiler", help="look for this compiler's warnings, in every entry of the database")
    parser.add_argument("--tidy", default="clang-tidy")
    parser.add_argument("root")
    parser.add_argument("directory", help="of the compile database")
    parser.add_argument("files", nargs="*")
    arguments = parser.parse_args()
    root = arguments.root
    units, headers = read_database(os.path.join(root, arguments.directory))
    if os.path.isfile(os.path.join(root, PYTHON_MODULE, "compile_commands.json")) and not arguments.compiler:
        sources = os.path.join(root, "tools/python_module/")
        units += [unit for unit in entries_of(os.path.join(root, PYTHON_MODULE))
                  if unit.path.startswith(sources) and not unit.is_header]
    files, what = None, "all files"
    if arguments.files:
        files, what = {os.path.abspath(file): None for file in arguments.files}, "these files"
    elif not arguments.all:
        base = find_base(root, arguments.base)
        if base is None:
            print("tools/lint: there is no earlier revision to compare with, so no file counts as changed")
            return
        files, what = changed_lines(root, base), f"lines changed since {base[:10]}"
    unreached = ()
    if files is not None:
        units, unreached = choose_units(units, Includes(root), files)
    elif not arguments.compiler:
        units = list({unit.path: unit for unit in reversed(units)}.values())
    left_out = units[arguments.at_most:] if arguments.at_most else ()
    units = units[:len(units) - len(left_out)]
    report = Report(root, files)
    if arguments.compiler:
        used = {word for unit in units for word in unit.arguments}
        with tempfile.TemporaryDirectory() as folder:
            precompiled = precompile(arguments.compiler, [header for header in headers if header.private_folder in used], folder, report)

            def command_of(unit):
                header = next((["-include-pch", precompiled[word]] for word in unit.arguments if word in precompiled), [])
                return [arguments.compiler, "-fsyntax-only", *unit.arguments, *header, unit.path]
            check_all(root, units, command_of, report)
    else:
        directory = os.path.join(root, arguments.directory)
        check_all(root, units, lambda unit: [arguments.tidy, "--quiet", *configuration(root, directory, unit), unit.path, "--",
                                             *unit.arguments], report)
    for path in sorted(unreached):
        print(f"{os.path.relpath(path, root)} is compiled by no configured target, and was not checked")
    if left_out:
        print(f"{len(left_out)} more sources with changes were not read; tools/lint --all reads them")
    count = len(report.found) + report.broken
    print(f"{arguments.compiler or arguments.tidy}: {count} finding{'' if count == 1 else 's'} in {what} ({len(units)} sources read)")
    sys.exit(1 if count else 0)


if __name__ == "__main__":
    main()
