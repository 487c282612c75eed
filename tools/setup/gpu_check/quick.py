"""tools/gpu-check --quick: first what tells within three minutes whether the library works on the machine's GPU, then, in
the time that is left, the rest. What has passed is not run again by a later call, unless the library has changed.
"""

import json
import os
import re
import time

import run_tests

from . import compare, machine, programs, steps

# One of each ROW_STEP of the op table's rows is run in the part that has to be done within three minutes.
ROW_STEP = 6
# Cases of reel_cuda_bench and pytorch.py: what is computed, what is copied, what the CPU has to queue.
FIGURES = [
    "matmul f32 (1024, 1024) x (1024, 1024)",
    "matmul bf16 (4096, 4096) x (4096, 4096)",
    "conv2d tf32 (32, 64, 56, 56) 3 x 3 by 1 to 64 forward, backward",
    "lstm T = 50, B = 32, H = 512 forward, backward",
    "lstm cell in a loop T = 50, B = 32, H = 128 forward, backward",
    "chain of mul, add, [64] forward, backward",
    "softmax (4096, 1000) forward, backward",
    "sum (4096, 4096) over axis 1 forward",
    "training 784-1024-1024-10, batch 64, Adam",
    "training 784-1024-1024-10, batch 64, Adam, as a CUDA graph",
]
SAMPLE_OPTIONS = ["--epochs", "2", "--width", "6", "--device", "cuda:0"]
LEARNT = re.compile(r"^dev +600 +(9[0-9]|100)\.[0-9]{2} %$", re.MULTILINE)


class Quick:
    """`check`: the Check of main.py, which has the steps of a whole run."""

    def __init__(self, check, root):
        self.check = check
        self.runner = check.runner
        self.arguments = check.arguments
        self.root = root
        self.build = check.build
        self.variables = {}
        self.begun = time.monotonic()
        self.calls_file = check.out / "stand-in.txt"

    # The programs: compiled here, or elsewhere.
    def have_programs(self):
        if self.arguments.prebuilt:
            return self.take_prebuilt()
        return self.check.unpack() and self.check.configure("-Dkernels=native") and self.compile()

    def take_prebuilt(self):
        self.build = self.arguments.prebuilt.resolve()
        begun = time.monotonic()
        try:
            label = programs.read_label(self.build)
            capability = None if self.arguments.stand_in else machine.compute_capability()
            programs.check_device(label, capability, machine.driver_version())
        except programs.Unusable as error:
            return self.check.show(steps.Outcome("take what was built elsewhere", "FAILED", note=str(error)))
        self.variables["LD_LIBRARY_PATH"] = programs.search_path(self.build, self.arguments.python)
        note = f"kernels for {', '.join(label['architectures'])}"
        if label["sources"] != programs.hash_of_sources(self.root):
            note += "; its sources were not those of this tree"
        return self.check.show(steps.Outcome("take what was built elsewhere", "ok", time.monotonic() - begun, note))

    def compile(self):
        names = ["reel_cuda", "reel", "cuda_op_table_test", "cuda_graph_test", "reel_cuda_bench", "convnet", "reel_files",
                 "reel_decompositions"]
        if self.arguments.stand_in:
            names.append("cuda_stand_in")
        wanted = [target for target in self.check.introspect("targets") if target["name"] in names]
        files = [file for target in wanted for file in target["filename"]
                 if target["name"] != "reel" or "shared" in target["type"]]
        # Targets that are not built by then are left for the next call, which continues the build.
        outcome = self.check.compile("build for the GPU", files, "build.txt", max(1, self.runner.left() - 20))
        if outcome.status == "cut off":
            outcome.note += "; call it again, and it goes on from what is built"
        return self.check.show(outcome)

    def run(self, step, command, log, limit, variables=None):
        module = {"REEL_CUDA_MODULE": str(self.build / programs.MODULE)}
        return self.runner.run(step, command, self.check.out / log, limit, {**self.variables, **module, **(variables or {})})

    def test(self, step, program, variables=None):
        """Runs a Catch2 program, each test case in a process of its own."""
        test = {"name": os.path.basename(program), "cmd": [str(self.build / program)], "workdir": str(self.check.out),
                "timeout": 60, "suite": ["catch"], "is_parallel": True,
                "env": {**self.variables, "REEL_CUDA_MODULE": str(self.build / programs.MODULE), "OMP_NUM_THREADS": "1",
                        **(variables or {})}}
        outcome = steps.Outcome(step)
        begun, processors = time.monotonic(), steps.processor_seconds()
        runner = run_tests.Runner(self.root, self.build, [], seconds=max(1, self.runner.left() - 5))
        results = [one for several in self.runner.concurrently(runner.run, runner.split([test])) for one in several]
        outcome.seconds, outcome.processor_seconds = time.monotonic() - begun, steps.processor_seconds() - processors
        outcome.note, counts = run_tests.count_of(results)
        # There is a GPU, or its stand-in: nothing may be skipped.
        outcome.status = "FAILED" if counts["failed"] or counts["skipped"] or not counts["passed"] else "ok"
        lines = [line for one in results if one.status != "passed"
                 for line in [f"{one.title()}:", *("  " + text for text in one.lines[:12])]]
        with open(self.check.out / "tests.txt", "a") as log:
            print(f"== {step}", *(f"{one.status}  {one.title()}" for one in results), *lines, sep="\n", file=log)
        outcome.output = "\n".join(lines)
        if lines:
            self.check.sections.append([f"{step}:", *lines])
        return outcome

    def op_table(self, step, stride):
        return self.test(step, programs.OP_TABLE, {"REEL_ROW_STEP": str(stride),
                                                   "REEL_UNCOMPARED": "1" if self.arguments.stand_in else "0"})

    def sample(self):
        outcome = self.run("a sample trained (convnet)", [self.build / programs.SAMPLE, *SAMPLE_OPTIONS], "sample.txt", 60)
        if self.arguments.stand_in and "are no longer finite" in outcome.output:
            # The kernel that looks for NaN has not run; the sample stops behind its first epoch.
            outcome.status, outcome.note = "ok", "one epoch; what was not computed is refused behind it"
            return outcome
        if outcome.status == "ok" and not LEARNT.search(outcome.output):
            outcome.status, outcome.note = "FAILED", "it learns less than on the CPU, where 90 % of the dev set are right"
        lines = outcome.output.strip().splitlines()
        if outcome.is_well and lines:
            outcome.note = " ".join(lines[-1].split())
        return outcome

    def graph(self):
        step = "a graph recorded and replayed"
        if not self.arguments.stand_in:
            return self.test(step, programs.GRAPH)
        outcome = self.run(step, [self.build / programs.FIGURES, "--only", FIGURES[-1]], "benchmarks.txt", 60)
        replays = self.count_of("cudaGraphLaunch")
        if outcome.status == "ok":
            outcome.status, outcome.note = "ok" if replays > 10 else "FAILED", f"{replays} replays of a step of training"
        return outcome

    def figures(self):
        ours, theirs = self.check.out / "reel-ten.json", self.check.out / "pytorch-ten.json"
        for file in (ours, theirs):
            file.unlink(missing_ok=True)
        only = [word for name in FIGURES for word in ("--only", name)]
        if self.arguments.stand_in:
            # The time would be that of queueing alone.
            outcome = self.run("ten figures", [self.build / programs.FIGURES, "--once", *only], "benchmarks.txt", 60)
            outcome.note = outcome.note or f"{outcome.output.count(': runs')} of {len(FIGURES)} run; nothing was timed"
            self.check.show(outcome)
            return
        self.check.show(self.run("ten figures", [self.build / programs.FIGURES, "--json", ours, *only], "benchmarks.txt", 60))
        program = [self.arguments.python, self.root / "tools/benchmark/cuda/pytorch.py"]
        # Without what the library's programs need: PyTorch brings its own libraries.
        outcome = self.runner.run("ten figures of PyTorch", [*program, "--json", theirs, *only],
                                  self.check.out / "benchmarks.txt", 60)
        if outcome.status == "skipped":
            outcome.note = outcome.output.strip().splitlines()[-1]
        self.check.show(outcome)
        rows = compare.rows_of(ours, theirs)
        if rows:
            self.check.sections.append(compare.table_of(rows))

    def give_verdict(self):
        """What has to be done within three minutes; the programs are there."""
        if self.arguments.stand_in:
            self.use_stand_in()
        self.check.show(self.op_table(f"op table, one of {ROW_STEP} rows", ROW_STEP))
        self.check.show(self.sample())
        self.check.show(self.graph())
        self.figures()
        if self.arguments.stand_in:
            self.check.show(self.calls("calls on the stand-in"))

    # On a stand-in for a GPU.
    def use_stand_in(self):
        self.calls_file.unlink(missing_ok=True)
        self.variables["LD_PRELOAD"] = str(self.build / programs.STAND_IN)
        self.variables["REEL_STAND_IN_REPORT"] = str(self.calls_file)

    def lines_of_calls(self):
        return self.calls_file.read_text().splitlines() if self.calls_file.is_file() else []

    def count_of(self, call):
        return sum(int(line.split()[-1]) for line in self.lines_of_calls() if line.startswith(f"count {call} "))

    def calls(self, step):
        """What the stand-in has seen of the programs since it was asked last."""
        launches = self.count_of("launch")
        violations = sorted({line.removeprefix("violation ") for line in self.lines_of_calls()
                             if line.startswith("violation ")})
        self.calls_file.unlink(missing_ok=True)
        outcome = steps.Outcome(step, "FAILED" if violations or not launches else "ok",
                                note=f"{launches} launches; {len(violations)} kinds of calls break a rule of a GPU")
        if violations:
            self.check.sections.append(["What a GPU would have refused:", *("  " + one for one in violations)])
        return outcome

    # The remaining steps, one after the other.
    def rest(self):
        """Runs what has not passed with this library in an earlier call."""
        done = Done(self.check.out / "done.json", programs.hash_of(self.build / programs.MODULE, self.build / programs.LIBRARY))
        later = {"op table, all rows": self.all_rows}
        if self.arguments.prebuilt and not self.arguments.stand_in:
            later["all benchmarks"] = lambda: self.recorded(
                lambda: self.check.benchmarks(self.build / programs.FIGURES, self.variables))
        elif not self.arguments.stand_in:
            later["build what wants the GPU"] = lambda: self.recorded(self.check.compile_for_gpu)
            later["all tests and benchmarks on the GPU"] = lambda: self.recorded(self.check.on_gpu)
            later["the tests, watched"] = lambda: self.recorded(self.check.watch_gpu)
        for step, run in later.items():
            if note := done.result_of(step):
                self.check.show(steps.Outcome(step, "ok", note=f"in an earlier call: {note}"))
            elif self.runner.left() < 10:
                print(f"{'left':8} {'':8}  {step}: call it again for this", flush=True)
            else:
                outcomes = run()
                for one in outcomes:
                    if one not in self.check.outcomes:
                        self.check.show(one)
                if all(one.status == "ok" for one in outcomes):
                    done.add(step, "; ".join(one.note for one in outcomes if one.note))

    def all_rows(self):
        outcomes = [self.op_table("op table, all rows", 1)]
        return outcomes + ([self.calls("calls on the stand-in, all rows")] if self.arguments.stand_in else [])

    def recorded(self, run):
        """The outcomes that a step of the whole run shows."""
        before = len(self.check.outcomes)
        run()
        return self.check.outcomes[before:]

    def summary(self):
        """Lines for a report, of all steps so far."""
        outcomes = self.check.outcomes
        well = bool(outcomes) and all(one.is_well for one in outcomes)
        width = max((len(one.step) for one in outcomes), default=0)
        return [f"gpu-check --quick: {'all is well' if well else 'NOT all is well'} after "
                f"{time.monotonic() - self.begun:.0f} s; by step, with seconds of the processors:",
                *(f"  {one.step:<{width}}  {one.status:7} {one.seconds:6.1f} s {one.processor_seconds:7.1f} s  {one.note}".rstrip()
                  for one in outcomes)]


class Done:
    """Which steps have passed with a library, in a file."""

    def __init__(self, path, library):
        self.path, self.library = path, library
        try:
            found = json.loads(path.read_text())
        except (OSError, ValueError):
            found = {}
        self.steps = found.get("steps", {}) if found.get("library") == library else {}

    def result_of(self, step):
        return self.steps.get(step)

    def add(self, step, note):
        self.steps[step] = note or "passed"
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps({"library": self.library, "steps": self.steps}, indent=1) + "\n")
        os.replace(part, self.path)
