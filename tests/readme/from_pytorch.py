"""Writes a program that checks what the page include/reel/from-pytorch.md says of reel's expressions.

Each claim of the table of differences, "`EXPRESSION` is VALUE" or "`EXPRESSION` throws ERROR", is compiled. Fails if a word
in the code of the table of names is in no public header.

Usage: from_pytorch.py PAGE TARGET
"""

import re
import sys
from pathlib import Path

CODE = re.compile(r"`([^`]+)`")
CLAIM = re.compile(r"^`([^`]+)` (?:is ([-+.\w]+)|throws (\w+))$")
START = """#include <reel/reel.h>
#include <reel/testing.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <type_traits>

using namespace reel;

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
int failures = 0;

double value_of(const Tensor& x) { return to(x, f64).item(); }
template <class T>
  requires std::is_arithmetic_v<T>
double value_of(T number) {
  return static_cast<double>(number);
}

template <class F>
void check_value(const char* text, double value, F f) {
  double found = value_of(f());
  if (std::abs(found - value) <= 1e-5 || (std::isnan(found) && std::isnan(value))) return;
  std::printf("%s is %g, not %g\\n", text, found, value);
  ++failures;
}

template <class E, class F>
void check_error(const char* text, F f) {
  try {
    static_cast<void>(f());
    std::printf("%s throws nothing\\n", text);
    ++failures;
  } catch (const E&) {
  }
}

}  // namespace

int main() {
"""


def rows_of(text, heading):
    section = text.split(f"## {heading}\n")[1].split("\n## ")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")]
            for line in section.splitlines() if line.startswith("|")][2:]


def check_names(page, rows):
    words = set()
    for header in page.parent.rglob("*.h"):
        words.update(re.findall(r"\w+", header.read_text()))
    missing = {word for _, cell in rows for code in CODE.findall(cell)
               for word in re.findall(r"[A-Za-z_]\w*", code)} - words
    if missing:
        sys.exit(f"{page} names what no header declares: {', '.join(sorted(missing))}")


def main():
    page, target = Path(sys.argv[1]), Path(sys.argv[2])
    text = page.read_text()
    check_names(page, rows_of(text, "Names"))
    lines = []
    for _, _, cell, _ in rows_of(text, "Differences"):
        claim = CLAIM.match(cell)
        if not claim:
            continue
        expression, value, error = claim.groups()
        quoted = expression.replace("\\", "\\\\").replace('"', '\\"')
        call = f"check_error<{error}>(\"{quoted}\"" if error else f"check_value(\"{quoted}\", {value.replace('nan', 'not_a_number')}"
        lines.append(f"  {call}, [] {{ return {expression}; }});\n")
    if len(lines) < 10:
        sys.exit(f"{page} makes only {len(lines)} claims")
    target.write_text(START + "".join(lines) + "  return failures > 0;\n}\n")


if __name__ == "__main__":
    main()
