"""Puts the times of reel_cuda_bench and pytorch.py side by side, with the goals."""

import json
import statistics
from dataclasses import dataclass

# The largest allowed ratio of reel's time to PyTorch's, by the family of the case.
GOALS = {"matmul": 1.0, "conv": 1.0, "lstm": 1.0, "chain": 0.5}
# The noise between two runs is not held against a goal of equal speed.
NOISE = 0.03


@dataclass
class Row:
    family: str
    name: str
    work: float
    ours: object  # µs, or what went wrong
    theirs: object  # µs, what went wrong, or None if it was not measured

    @property
    def ratio(self):
        if isinstance(self.ours, float) and isinstance(self.theirs, float) and self.theirs > 0:
            return self.ours / self.theirs
        return None

    @property
    def verdict(self):
        if isinstance(self.ours, str):
            return "FAILED"
        goal = GOALS.get(self.family)
        if goal is None or self.ratio is None:
            return ""
        return "met" if self.ratio <= goal + NOISE else f"MISSED (at most {goal:g})"


def read_times(path):
    """Of each case: its entry, or {} if there is no such file."""
    try:
        with open(path) as file:
            return {entry["name"]: entry for entry in json.load(file)["cases"]}
    except (OSError, ValueError):
        return {}


def time_in(entry):
    if not entry:
        return None
    return entry["error"] if "error" in entry else float(entry["microseconds"][1])


def rows_of(ours_path, theirs_path):
    theirs = read_times(theirs_path)
    return [Row(entry["family"], name, entry["work"], time_in(entry), time_in(theirs.get(name)))
            for name, entry in read_times(ours_path).items()]


def cell(time):
    return "—" if time is None else "failed" if isinstance(time, str) else f"{time:.2f}"


def speed(row):
    if not row.work or not isinstance(row.ours, float):
        return ""
    return f"{row.work / row.ours / 1e6:.1f}"


def table_of(rows):
    lines = [f"{'µs an op':<76}{'reel':>11}{'PyTorch':>11}{'ratio':>8}{'TFLOP/s':>9}  goal"]
    for row in rows:
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
        times = f"{cell(row.ours):>11}{cell(row.theirs):>11}{ratio:>8}{speed(row):>9}"
        lines.append(f"{row.name:<76}{times}  {row.verdict}".rstrip())
    return lines


def summary_of(rows):
    """A line about each family that has a goal, and whether all goals are met."""
    lines, well = [], True
    for family, goal in GOALS.items():
        ratios = [row.ratio for row in rows if row.family == family and row.ratio is not None]
        missed = [row for row in rows if row.family == family and row.verdict not in ("", "met")]
        well = well and not missed
        if ratios:
            lines.append(f"{family}: median {statistics.median(ratios):.2f}, worst {max(ratios):.2f} of PyTorch's time "
                         f"in {len(ratios)} cases; goal {goal:g}: {f'missed in {len(missed)}' if missed else 'met'}")
    return lines, well and not any(row.verdict == "FAILED" for row in rows)
