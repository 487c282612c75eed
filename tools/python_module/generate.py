#!/usr/bin/env python3
"""Writes the C++ tables by which Python calls reel's ops, from the public headers: include/reel/ops is the list of ops.

Usage: generate.py INCLUDE OUTPUT

INCLUDE is the folder of reel's headers. OUTPUT then has ops_0.cpp … with a row for each function, options.cpp with the
fields of the options of modules and optimisers, and skipped.txt with the declarations that Python does not have, and why.
"""

import keyword
import re
import sys
from pathlib import Path

PARTS = 4  # files of ops, which compile side by side

# Functions that Python has under another name or form.
ELSEWHERE = {"tensor": "reel.tensor takes nested lists and buffers", "slice": "x[1:2]; slice_axis(x, axis, start, stop, step)"}
RENAMED = {"slice": "slice_axis"}

# The Python values that a parameter takes, by a letter that chooses among overloads: see Overload in op.h.
KINDS = {
    "Arg": "t", "Tensor": "t", "Destination": "t", "int": "i", "std::int64_t": "i", "double": "d", "bool": "b",
    "Axes": "s", "Shape": "s", "AxisNumbers": "s", "DType": "y", "Device": "v", "std::vector<std::int64_t>": "l",
    "std::span<const Tensor>": "r", "std::string_view": "*", "RowsAndColumns": "s", "ConvolutionPadding": "*",
    "std::span<const PadWidth>": "r", "Generator*": "*",
}
RESULTS = {"Tensor", "bool", "std::vector<Tensor>"}


def without_comments(text):
    text = re.sub(r"//[^\n]*", "", text)
    return re.sub(r"^[ \t]*#[^\n]*(?:\\\n[^\n]*)*", "", text, flags=re.M)


def split_at_commas(text):
    """The parts of a list between its outermost commas."""
    parts, depth, part = [], 0, ""
    for character in text:
        depth += (character in "(<{[") - (character in ")>}]")
        if character == "," and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += character
    return parts + [part.strip()] if part.strip() else parts


def closing(text, position):
    """The index behind the brace that closes the block which begins at `position`, behind its opening brace."""
    depth = 1
    while depth:
        depth += (text[position] == "{") - (text[position] == "}")
        position += 1
    return position


def declarations(text):
    """The declarations directly in namespace reel or reel::…, but not in detail: (head, body), with body None where there
    is none."""
    found = []
    for place in re.finditer(r"^namespace reel(?!::detail)(?:::\w+)? \{", text, flags=re.M):
        found += declarations_in(text[place.end():closing(text, place.end()) - 1])
    return found


def declarations_in(text):
    position, found, head = 0, [], ""
    while position < len(text):
        character = text[position]
        position += 1
        if character == ";":
            found.append((" ".join(head.split()).removeprefix("template <int = 0> "), None))
            head = ""
        elif character == "{" and head.count("(") <= head.count(")"):
            end = closing(text, position)
            found.append((" ".join(head.split()), text[position:end - 1]))
            position, head = end, ""
            while position < len(text) and text[position] in " \n;":
                position += 1
        else:
            head += character
    return found


class Api:
    """What the headers declare."""

    def __init__(self):
        self.functions, self.structs, self.enums, self.overloaded_axis = [], {}, {}, set()
        self.templates = {}

    def read(self, header, scope=""):
        for head, body in declarations(without_comments(header.read_text(encoding="utf-8"))):
            if match := re.fullmatch(r"enum class (\w+) : [\w:]+", head):
                names = [entry.split("=")[0].strip() for entry in split_at_commas(body)]
                self.enums[match[1]] = (scope, names)
            elif body is not None and (match := re.fullmatch(r"struct (\w+)", head)):
                self.structs[match[1]] = (scope, self.fields(body))
            elif match := re.fullmatch(r"template <class Cell, bool is_layer> struct (\w+)", head):
                self.templates[match[1]] = body
            elif match := re.fullmatch(r"using (\w+) = (\w+)<(\w+)Cell, (true|false)>", head):
                owners = {match[3], "Layer"} if match[4] == "true" else {match[3]}
                self.structs[match[1]] = (scope, self.fields_of_owners(self.templates[match[2]], owners))
            elif match := re.match(r"template <std::integral Axis> Tensor (\w+)\(", head):
                self.overloaded_axis.add(match[1])
            elif scope == "" and body is None:
                if match := re.fullmatch(r"([\w:<>]+) (\w+)\((.*)\)", head):
                    self.functions.append((match[2], match[1], split_at_commas(match[3])))

    @classmethod
    def fields_of_owners(cls, body, owners):
        """The data members of a struct without those of type LSTMOption<…> and the like whose owner is another module."""
        body = re.sub(r"\b(\w+)Option<([\w:]+)>", lambda option: option[2] if option[1] in owners else "NoOption", body)
        return [field for field in cls.fields(body) if field[0] != "NoOption"]

    @staticmethod
    def fields(body):
        """The data members of a struct: (type, name, default)."""
        body = re.sub(r"struct \w+ \{[^{}]*\}[^;]*;", "", body, flags=re.S)
        found = []
        for statement in body.split(";"):
            statement = " ".join(statement.split())
            match = re.match(r"((?:std::\w+<[\w:]+>|[\w:]+)\*?) (.+)$", statement)
            if not match or "(" in statement.split("=")[0] or match[1] in ("ReduceOptions::ByName", "using", "friend"):
                continue
            for entry in split_at_commas(match[2]):
                name, _, default = (part.strip() for part in entry.partition("="))
                name = re.sub(r"\{[^{}]*\}$", "", name)
                if re.fullmatch(r"\w+", name):
                    found.append((match[1], name, default))
        return found


def python_name(name):
    return name + "_" if keyword.iskeyword(name) else name


class Unsupported(Exception):
    """A parameter or a result that Python has no value for."""


class Writer:
    """Writes the rows of the tables."""

    def __init__(self, api):
        self.api, self.skipped, self.records = api, [], {}

    def bare(self, type_name):
        return re.sub(r"^const (.*?)&?$", r"\1", type_name).rstrip("&")

    def is_record(self, type_name):
        """Whether a struct is passed or returned as a tuple of tensors, behind which a passed one may have other values."""
        fields = self.api.structs.get(type_name, ("", []))[1]
        return (bool(fields) and fields[0][0] == "Tensor" and not type_name.endswith("Options") and
                all(kind == "Tensor" or self.is_optional(kind) for kind, _, _ in fields))

    @staticmethod
    def is_optional(kind):
        return kind.startswith("std::optional<")

    def overload(self, name, result, parameters):
        names, kinds, required, keywords, lines, arguments = [], "", 0, [], [], []
        where = "where"
        if not (result in RESULTS or self.is_record(result)):
            raise Unsupported(f"returns {result}")
        for parameter in parameters:
            declared, _, default = (part.strip() for part in parameter.partition(" = "))
            match = re.fullmatch(r"(.+?)[ ]?\b(\w+)", declared)
            kind, called = self.bare(match[1].strip()), match[2]
            if kind == "Location":
                arguments.append(where)
                continue
            options = self.api.structs.get(kind)
            if options and not self.is_record(kind) and kind != "RowsAndColumns":
                lines.append(f"{kind} options;")
                for field_type, field, _ in options[1]:
                    keywords.append((python_name(field), f"values.read({{}}, options.{field});"))
                    self.check_readable(field_type)
                arguments.append("options")
                continue
            if kind == "Axes" or called == "axes" and name in self.api.overloaded_axis:
                called = "axis"
            names.append(python_name(called))
            kinds += self.kind(kind)
            required += not default
            arguments.append(self.argument(kind, len(names) - 1, default))
        for field, read in keywords:
            lines.append(read.format(len(names)))
            names.append(field)
        positional = len(kinds)
        text = "[](const Values& values, [[maybe_unused]] Location where) -> PyObject* {\n      "
        # Read before the call, which may release Python's global lock.
        lines += [f"auto&& x{i} = {argument};" for i, argument in enumerate(arguments)]
        called = ", ".join(f"x{i}" for i in range(len(arguments)))
        text += "\n      ".join(lines + [f"return to_python(values.run([&] {{ return reel::{name}({called}); }}));"]) + "\n    }"
        listed = ", ".join(f'"{one}"' for one in names)
        return f'  {{"{RENAMED.get(name, name)}", {{{listed}}}, {positional}, {required}, "{kinds}", {text}}},\n'

    def check_readable(self, kind):
        inner = re.sub(r"std::optional<(.*)>", r"\1", kind)
        if inner not in KINDS and inner not in self.api.enums and inner not in ("Initialiser", "std::size_t"):
            raise Unsupported(f"has an option of type {kind}")

    def kind(self, kind):
        if kind in self.api.enums:
            return "*"
        record = re.fullmatch(r"std::span<const (\w+)>", kind)
        if self.is_record(kind) or record and self.is_record(record[1]):
            return "r"
        if kind not in KINDS:
            raise Unsupported(f"takes {kind}")
        return KINDS[kind]

    def argument(self, kind, index, default):
        if default:
            if kind == "Arg":
                return f"values.arg_or({index}, {default})"
            if not default.startswith("{"):
                return f"values.get_or<{kind}>({index}, {default})"
            return f"values.get_or<{kind}>({index}, {kind}{default})"
        if kind == "Arg":
            return f"values.arg({index})"
        if kind == "Destination":
            return f"Destination(values.tensor({index}), where)"
        if kind == "Tensor":
            return f"values.tensor({index})"
        if match := re.fullmatch(r"std::span<const (\w+)>", kind):
            return f"values.get<std::vector<{match[1]}>>({index})"
        return f"values.get<{kind}>({index})"

    def rows(self):
        rows = []
        for name, result, parameters in self.api.functions:
            try:
                if name in ELSEWHERE and name not in RENAMED:
                    raise Unsupported(ELSEWHERE[name])
                rows.append((RENAMED.get(name, name), self.overload(name, result, parameters)))
            except Unsupported as reason:
                self.skipped.append(f"{name}({', '.join(parameters)}): {reason}")
        return rows

    def readers(self):
        """Functions that read enumerators, and structs of tensors, and make the latter into tuples."""
        text = ""
        for name, (scope, names) in sorted(self.api.enums.items()):
            full = f"{scope}{name}"
            entries = ", ".join(f'{{"{one}", {full}::{one}}}' for one in names)
            text += f"inline void read_value(const Place& place, {full}& result) {{\n"
            text += f"  result = read_name<{full}>(place, {{{entries}}});\n}}\n"
        for name in sorted(self.api.structs):
            scope, fields = self.api.structs[name]
            if scope or not self.is_record(name):
                continue
            fill = " ".join(f"item.read({i}, result.{field});" if self.is_optional(kind) else
                            f"result.{field} = item.tensor({i});" for i, (kind, field, _) in enumerate(fields))
            names = ", ".join(f'"{field}"' for _, field, _ in fields)
            items = ", ".join(f"value.{field}" for _, field, _ in fields)
            optional = sum(1 for _, _, default in fields if default)
            text += f"inline void read_value(const Place& place, {name}& result) {{\n"
            text += f"  RecordReader item(place, {len(fields) - optional}, {len(fields)});\n  {fill}\n}}\n"
            if any(self.is_optional(kind) for kind, _, _ in fields):
                continue
            text += f"inline PyObject* to_python(const {name}& value) {{\n  static PyTypeObject* type = "
            text += f'make_record_type("reel.{name}", {{{names}}});\n  return make_record(type, {{{items}}});\n}}\n'
        return text

    def options(self):
        text = ""
        for name in sorted(self.api.structs):
            scope, fields = self.api.structs[name]
            if not scope or not name.endswith("Options") or not fields:
                continue
            try:
                for kind, _, _ in fields:
                    self.check_readable(kind)
            except Unsupported as reason:
                self.skipped.append(f"{scope}{name}: {reason}")
                continue
            # A nested list of options, such as a cell's, is not a keyword.
            known = ", ".join(f'"{python_name(field)}"' for _, field, _ in fields)
            text += f"template <>\nstruct Fields<{scope}{name}> {{\n  static constexpr const char* names[] = {{{known}}};\n"
            text += f"  static void read(std::size_t i, const Place& place, {scope}{name}& options) {{\n    switch (i) {{\n"
            for i, (_, field, _) in enumerate(fields):
                text += f"      case {i}: return read_value(place, options.{field});\n"
            text += "    }\n  }\n};\n"
        return text


def write_if_changed(path, text):
    """Leaves a file of the same text as it is, so that what depends on it is not compiled again."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    include, output = Path(sys.argv[1]) / "reel", Path(sys.argv[2])
    output.mkdir(parents=True, exist_ok=True)
    api = Api()
    api.read(include / "interpolation.h")
    for header in sorted((include / "ops").glob("*.h")):
        api.read(header)
    for folder in ("nn", "optim"):
        for header in sorted((include / folder).rglob("*.h")):
            api.read(header, folder + "::")
    writer = Writer(api)
    rows = writer.rows()
    head = "// Written by generate.py from include/reel.\n"
    write_if_changed(output / "records.h", head + '#pragma once\n\n#include <reel/ops.h>\n#include <reel/nn.h>\n\n#include "values.h"\n\n'
                     "namespace reel::python {\n\n" + writer.readers() + "\n}  // namespace reel::python\n")
    write_if_changed(output / "options.h", head + '#pragma once\n\n#include <reel/nn.h>\n#include <reel/optim.h>\n\n#include "options_of.h"\n'
                     '#include "records.h"\n\nnamespace reel::python {\n\n' + writer.options() + "\n}  // namespace reel::python\n")
    for part in range(PARTS):
        own = [text for _, text in rows[part * len(rows) // PARTS:(part + 1) * len(rows) // PARTS]]
        write_if_changed(output / f"ops_{part}.cpp", head + '#include "op.h"\n#include "records.h"\n\nnamespace reel::python {\n\n'
                         f"static const Overload overloads[] = {{\n{''.join(own)}}};\n\n"
                         f"std::span<const Overload> overloads_{part}() {{ return overloads; }}\n\n}}  // namespace reel::python\n")
    write_if_changed(output / "skipped.txt", "".join(line + "\n" for line in writer.skipped))
    print(f"{len(set(name for name, _ in rows))} functions, {len(rows)} overloads, {len(writer.skipped)} declarations skipped")


if __name__ == "__main__":
    main()
