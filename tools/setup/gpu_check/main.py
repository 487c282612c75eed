"""The steps of tools/gpu-check."""

import argparse
import concurrent.futures
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

import run_tests

from . import compare, compile_times, machine, ops, programs, steps, watch
from .quick import Quick

ROOT = Path(__file__).resolve().parents[3]
GPU_TESTS = ["--suite", "cuda", "--split"]


def arguments_of(description):
    parser = argparse.ArgumentParser(prog="tools/gpu-check", description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", type=Path, metavar="DIR", help="the folder that tools/bundle-deps has filled "
                        "(default: vendor in the tree, if it is there; else the libraries are the system's)")
    parser.add_argument("--build", type=Path, metavar="DIR", help="default: build/gpu; build/gpu-quick with --quick")
    parser.add_argument("--out", type=Path, metavar="DIR", default=ROOT / "build/gpu-check",
                        help="where the table and all output go (default: build/gpu-check)")
    parser.add_argument("--python", metavar="PROGRAM", default="python3",
                        help="a Python with PyTorch (default: python3)")
    parser.add_argument("--seconds", type=float,
                        help="ends after so many, whatever is left to do (default: 520; 7200 without a GPU)")
    parser.add_argument("--quick", action="store_true",
                        help="a verdict in three minutes on 16 processors: a build for this GPU, the op table on a sample of its "
                        "rows, one sample trained, one graph replayed, ten figures beside PyTorch; then, in the time that "
                        "is left, the rest of what wants a GPU. A later call goes on from what is built and has passed")
    parser.add_argument("--prebuilt", type=Path, metavar="DIR",
                        help="for --quick: build nothing, and run what --prebuild has put there on another machine")
    parser.add_argument("--prebuild", type=Path, metavar="DIR",
                        help="only build what --quick runs, and fill DIR with it; no GPU is needed")
    parser.add_argument("--gpu-architectures", metavar="LIST",
                        help="compile the kernels for these, such as 80,90 (default: that of the GPU; without one, 90)")
    parser.add_argument("--compile-times", nargs="*", metavar="FILE",
                        help="only tell how long each .cu file, or each of these, compiles on one processor, and fail if one "
                        f"takes longer than {compile_times.MOST} s")
    parser.add_argument("--without-device", action="store_true",
                        help="the same where there is no GPU: tests that want one are skipped, benchmarks only tried")
    parser.add_argument("--stand-in", action="store_true",
                        help="for --quick where there is no GPU: on a stand-in that computes nothing and checks every call")
    arguments = parser.parse_args()
    for name, is_given in (("--prebuilt", arguments.prebuilt), ("--stand-in", arguments.stand_in)):
        if is_given and not arguments.quick:
            parser.error(f"{name} goes with --quick")
    if arguments.quick and arguments.without_device:
        parser.error("--quick without a GPU wants --stand-in")
    arguments.build = arguments.build or ROOT / ("build/gpu-quick" if arguments.quick or arguments.prebuild else "build/gpu")
    arguments.has_gpu = not (arguments.without_device or arguments.stand_in or arguments.prebuild or
                             arguments.compile_times is not None)
    arguments.seconds = arguments.seconds or (520 if arguments.has_gpu else 7200)
    return arguments


class Check:
    def __init__(self, arguments):
        self.arguments = arguments
        self.build = arguments.build.resolve()
        self.out = arguments.out.resolve()
        self.prefix = self.build.with_name(self.build.name + "-vendor")
        self.outcomes = []
        self.sections = []  # lines of the report below its table of steps
        # Meson and Ninja often come with Python's packages.
        scripts = os.path.dirname(shutil.which(arguments.python) or sys.executable)
        path = os.pathsep.join([os.environ.get("PATH", ""), os.path.dirname(sys.executable), scripts])
        # Variables that change numbers or the division of work must not come from the caller's shell.
        environment = {name: value for name, value in os.environ.items()
                       if name not in ("OPENBLAS_CORETYPE", "OMP_NUM_THREADS")}
        self.environment = {**environment, "PATH": path, "OMP_WAIT_POLICY": "passive"}
        os.environ["PATH"] = path
        # A machine without a GPU may be a small one.
        self.runner = steps.Runner(arguments.seconds, self.environment, has_limits=arguments.has_gpu)

    def show(self, outcome):
        self.outcomes.append(outcome)
        note = f": {outcome.note}" if outcome.note else ""
        print(f"{outcome.status:8} {outcome.seconds:6.1f} s  {outcome.step}{note}", flush=True)
        if outcome.status in ("FAILED", "cut off") and outcome.output:
            print("\n".join("    " + line for line in outcome.output.rstrip().splitlines()[-25:]), flush=True)
        return outcome.is_well

    def run(self, step, command, log, limit, environment=None):
        outcome = self.runner.run(step, command, self.out / log, limit, environment)
        self.show(outcome)
        return outcome

    # The libraries, from distribution and Python packages.
    def unpack(self):
        bundle = self.arguments.bundle or ROOT / "vendor"
        packages = sorted(bundle.glob("*.deb")) if bundle.is_dir() else []
        if not packages and self.arguments.bundle:
            self.show(steps.Outcome("unpack", "FAILED", note=f"there are no packages in {bundle}"))
            return False
        shutil.rmtree(self.prefix, ignore_errors=True)
        self.prefix.mkdir(parents=True)
        well = True
        if packages:
            unpack = 'printf "%s\\0" "$@" | xargs -0 -P "$(nproc)" -I{} dpkg -x {} "$0"'
            outcome = self.runner.run(f"unpack {len(packages)} packages", ["sh", "-c", unpack, self.prefix, *packages],
                                      self.out / "build.txt", 60)
            well = self.show(outcome)
        return self.find_toolkit() and well

    def find_toolkit(self):
        root = machine.toolkit_root()
        if not root:
            return self.show(steps.Outcome("toolkit", "FAILED", note="no nvcc is on PATH or in /usr/local/cuda/bin"))
        if fault := machine.versions_fault(root):
            return self.show(steps.Outcome("toolkit", "FAILED", note=fault))
        lines, missing = machine.borrow_libraries(self.prefix, self.arguments.python)
        for line in lines:
            print(f"{'':18}{line}")
        return not missing or self.show(steps.Outcome("toolkit", "FAILED", note=(
            f"{', '.join(missing)}: neither the toolkit in {root}, nor the system, nor a package of "
            f"{self.arguments.python} has the library and its header")))

    def architectures(self):
        return self.arguments.gpu_architectures or ("auto" if self.arguments.has_gpu else "90")

    def configure(self, *options):
        command = ["meson", "setup", self.build, ROOT, "-Dbuildtype=release", "-Dcuda=enabled", "-Dtests=enabled",
                   "-Dsamples=enabled", "-Dtools=auto", "-Dpeer=disabled",
                   f"-Dgpu_architectures={self.architectures()}", "-Dgpu_optimization=3", *options]
        if (self.prefix / "usr").is_dir():
            command.append(f"-Dvendor_prefix={self.prefix}")
        if (self.build / "meson-private/coredata.dat").is_file():
            command.append("--reconfigure")
        return self.run("configure", command, "build.txt", 90).is_well

    def introspect(self, what):
        return json.loads(machine.output_of(["meson", "introspect", f"--{what}", self.build]) or "[]")

    def tests_of(self, suite):
        return [test for test in self.introspect("tests") if run_tests.Runner.in_suite(test, suite)]

    def files_of(self, tests):
        """What Ninja has to build for tests."""
        built = {target["id"]: target["filename"] for target in self.introspect("targets")}
        files = {name for names in built.values() for name in names}
        for test in tests:
            yield from (part for part in test["cmd"] if part in files)
            for needed in test["depends"]:
                yield from built[needed]

    def compile(self, step, files, log, limit=400):
        names = sorted({os.path.relpath(file, self.build) for file in files})
        return self.runner.run(step, ["ninja", "-C", self.build, "-k", "0", *names], self.out / log, limit)

    def compile_for_gpu(self):
        """The part of the build that the steps on the GPU need, so that they come first."""
        wanted = ("reel_cuda", "reel_cuda_bench", "reel", "op_coverage")
        files = [name for target in self.introspect("targets") if target["name"] in wanted for name in target["filename"]]
        self.show(self.compile("build what wants the GPU", [*files, *self.files_of(self.tests_of("cuda"))], "build.txt"))

    def compile_rest(self):
        """All else but the emulated device."""
        tests = [test for test in self.introspect("tests") if not run_tests.Runner.in_suite(test, "emulated")]
        return self.compile("build the rest", self.files_of(tests), "build-rest.txt")

    def tests(self, step, selection, limit):
        report = self.out / "tests.json"
        report.unlink(missing_ok=True)
        limit = max(1, min(limit if self.runner.has_limits else self.runner.left(), self.runner.left() - 5))
        command = [sys.executable, ROOT / "tools/setup/run_tests.py", *selection, "--seconds", limit, "--json", report]
        outcome = self.runner.run(step, [*command, ROOT, self.build], self.out / "tests.txt", limit + 5)
        lines = outcome.output.strip().splitlines()
        outcome.note = "; ".join(filter(None, [lines[-1] if lines and "passed" in lines[-1] else "", outcome.note]))
        results = json.loads(report.read_text()) if report.is_file() else []
        report.unlink(missing_ok=True)
        skipped = [one for one in results if one["status"] == "skipped"]
        if skipped:
            lines = [f"  {one['title']}: {one['lines'][0]}" for one in skipped]
            self.sections.append([f"Skipped in {step}:", *lines])
        if skipped and selection == GPU_TESTS and not self.arguments.without_device:
            outcome.status = "FAILED"
            outcome.note += "; a GPU is there, and tests were skipped"
        self.show(outcome)
        return outcome.is_well

    def ops_one_by_one(self, limit):
        """Where the op table fails: for which ops."""
        begun = time.monotonic()
        lines, count = ops.one_by_one(ROOT, self.build, min(limit, max(1, self.runner.left() - 5)), self.out / "tests.txt")
        self.show(steps.Outcome("ops on the GPU, one by one", "FAILED" if lines else "ok", time.monotonic() - begun,
                                f"{len(lines)} of {count} fail"))
        if lines:
            self.sections.append(["Ops that fail on the GPU:", *lines])

    def benchmarks(self, program=None, environment=None):
        ours, theirs = self.out / "reel.json", self.out / "pytorch.json"
        for file in (ours, theirs):
            file.unlink(missing_ok=True)
        trial = ["--seconds", "75"]
        if self.arguments.without_device:
            trial = ["--device", "cpu", "--once", "--filter", "[64]"]
        log = "benchmarks.txt"
        self.run("benchmarks", [program or self.build / "tools/reel_cuda_bench", "--json", ours, *trial], log, 100, environment)
        program = [self.arguments.python, ROOT / "tools/benchmark/cuda/pytorch.py"]
        outcome = self.runner.run("benchmarks of PyTorch", [*program, "--json", theirs, *trial], self.out / log, 100)
        if outcome.status == "skipped":
            outcome.note = outcome.output.strip().splitlines()[-1]
        self.show(outcome)
        if self.arguments.without_device:
            return
        rows = compare.rows_of(ours, theirs)
        summary, well = compare.summary_of(rows)
        if rows:
            self.sections.append(compare.table_of(rows) + [""] + summary)
        if summary:
            self.show(steps.Outcome("goals beside PyTorch", "ok" if well else "FAILED",
                                    note="" if well else "missed; the table says where"))

    def on_gpu(self):
        tool = next((name for target in self.introspect("targets") if target["name"] == "reel" and
                     target["type"] == "executable" for name in target["filename"]), None)
        if tool:
            outcome = self.run("reel devices", [tool, "devices"], "tests.txt", 60)
            self.sections.append(["reel devices:"] + ["  " + line for line in outcome.output.strip().splitlines()])
        if not self.tests("tests on the GPU", GPU_TESTS, 150):
            self.ops_one_by_one(120)
        with self.runner.paused():
            self.benchmarks()

    def all(self):
        self.begin()
        if not (self.unpack() and self.configure()):
            return
        self.compile_for_gpu()
        with concurrent.futures.ThreadPoolExecutor() as pool:
            rest = pool.submit(self.compile_rest)
            cases = []
            # Targets that failed to build do not stop the others.
            if any(self.build.glob("cuda/libreel_cuda.so")):
                self.on_gpu()
                if not self.arguments.without_device:
                    cases = self.cases_to_watch()
            watched = [pool.submit(watch.watch, self.runner, tool, cases, self.out, 200) for tool in watch.TOOLS]
            self.show(rest.result())
            self.append_log("build-rest.txt", "build.txt")
            self.tests("tests on the CPU", ["--without-suite", "cuda", "--without-suite", "emulated"], 300)
            for one in watched:
                self.show(one.result())

    def cases_to_watch(self):
        tests = run_tests.Runner(ROOT, self.build, [], ["cuda", "catch"])
        # The op table takes longest.
        return sorted(tests.split(tests.tests()), key=lambda test: "op_table" not in test["name"])

    def watch_gpu(self):
        cases = self.cases_to_watch()
        for tool in watch.TOOLS:
            self.show(watch.watch(self.runner, tool, cases, self.out, 200))

    def begin(self):
        self.out.mkdir(parents=True, exist_ok=True)
        for file in self.out.glob("*.txt"):
            file.unlink()

    def quick(self, described):
        """Returns lines for a report, which is written before the rest is done, too."""
        self.begin()
        quick = Quick(self, ROOT)
        is_there = quick.have_programs()
        if is_there:
            quick.give_verdict()
        lines = quick.summary()
        if is_there:
            self.report(time.monotonic() - quick.begun, described, lines)
            print("\nThis is the verdict. What follows is the rest.\n", flush=True)
            quick.rest()
        return lines

    def prebuild(self):
        self.begin()
        if not (self.unpack() and self.configure("-Dkernels=runnable")):
            return
        names = [*programs.RUN, programs.MODULE, programs.LIBRARY, programs.FILES_MODULE, programs.STAND_IN]
        files = [file for target in self.introspect("targets") for file in target["filename"]
                 if os.path.relpath(file, self.build) in names or target["name"] in ("reel", "reel_debug") and ".so" in file]
        if not self.show(self.compile("build what --quick runs", files, "build.txt", self.runner.left())):
            return
        architectures = sorted(set(self.architectures().replace("all", "80,90").split(",")))
        size = programs.fill(self.arguments.prebuild.resolve(), ROOT, self.build, architectures)
        self.show(steps.Outcome(f"fill {self.arguments.prebuild}", "ok",
                                note=f"{size / 1e6:.0f} MB, kernels for {', '.join(architectures)}"))

    def append_log(self, part, whole):
        with open(self.out / whole, "ab") as log:
            log.write((self.out / part).read_bytes())
        (self.out / part).unlink()

    def report(self, seconds, described, last_lines=()):
        width = max((len(one.step) for one in self.outcomes), default=0)
        lines = described + [""]
        for one in self.outcomes:
            lines.append(f"{one.step:<{width}}  {one.status:8} {one.seconds:6.1f} s  {one.note}".rstrip())
        for section in self.sections:
            lines += ["", *section]
        well = bool(self.outcomes) and all(one.is_well for one in self.outcomes)
        verdict = "all is well" if well else "NOT all is well: " + ", ".join(
            one.step for one in self.outcomes if not one.is_well)
        lines += ["", f"gpu-check: {verdict} ({seconds:.0f} s)"]
        if last_lines:
            lines += ["", *described, *last_lines]
        if not self.arguments.has_gpu:
            lines += ["There was no GPU: nothing ran on one."]
        (self.out / "report.txt").write_text("\n".join(lines) + "\n")
        print("\n" + "\n".join(lines))
        return 0 if well else 1


def main(description):
    arguments = arguments_of(description)
    if arguments.compile_times is not None:
        return compile_times.main(Check(arguments))
    names, absence = machine.device_names()
    if not names and arguments.has_gpu:
        print(f"tools/gpu-check: there is no CUDA device here: {absence}; --without-device does what needs none",
              file=sys.stderr)
        return 3
    begun = time.monotonic()
    check = Check(arguments)

    def stop(*_):
        check.show(steps.Outcome("gpu-check", "cut off", note="it was stopped"))
        check.runner.end_all()
        sys.exit(1)
    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, stop)
    described = machine.describe(arguments.python)
    print("\n".join(described), end="\n\n", flush=True)
    lines = ()
    try:
        if arguments.prebuild:
            check.prebuild()
        elif arguments.quick:
            lines = check.quick(described)
        else:
            check.all()
    finally:
        status = check.report(time.monotonic() - begun, described, lines)
    return status
