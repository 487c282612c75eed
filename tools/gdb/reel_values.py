"""Reads tensors, tapes and modules from the memory of a stopped program, or of a core file, and describes them in words.

It knows no debugger: reel_gdb.py and reel_lldb.py say how memory is read. The library has the offsets of its classes' members in
tables (debugger_layout.cpp in lib/record, lib/autograd and lib/nn), so that it needs no debug information of its own. Nothing is called in the program, and
what is read is checked: memory that was freed or overwritten gives a sentence, not an error.
"""

import math
import struct

MOST_AXES = 8
MOST_STATISTICS = 1 << 16  # elements of a tensor of which statistics are computed
MOST_BYTES = 1 << 22  # read at once
MOST_PARTS = 10000  # of a module that are listed
MOST_READS = 200000  # for one value: memory that was overwritten may lead round in circles
DTYPES = ["f32", "f64", "bf16", "f16", "i32", "i64", "u8", "bool", "i8", "i16"]
FORMATS = {"f32": "f", "f64": "d", "f16": "e", "i32": "i", "i64": "q", "u8": "B", "bool": "B", "i8": "b", "i16": "h", "bf16": "H"}
DEVICES = ["cpu", "cuda"]


class Unreadable(Exception):
    """The memory cannot be read, or does not hold what it should."""


class Memory:
    """The memory of a program. A debugger derives from it."""

    def __init__(self):
        self.tables = {}
        self.reads_left = MOST_READS

    def begin(self):
        """To be called before each value that is described."""
        self.reads_left = MOST_READS

    def read(self, address, count):
        """`count` bytes. Throws: Unreadable."""
        self.reads_left -= 1
        if self.reads_left < 0:
            raise Unreadable("too long")
        return self.read_memory(address, count) if count else b""

    def read_memory(self, address, count):
        """`count` bytes, one or more. Throws: Unreadable."""
        raise NotImplementedError

    def address_of(self, symbol):
        """The address of a symbol of the library; None if there is none."""
        raise NotImplementedError

    def symbol_at(self, address):
        """The demangled name of the symbol that an address is in; None if there is none."""
        raise NotImplementedError

    def number(self, address, form):
        return struct.unpack("<" + form, self.read(address, struct.calcsize("<" + form)))[0]

    def pointer(self, address):
        return self.number(address, "Q")

    def text(self, address, most=1024):
        """A text that ends with a zero byte."""
        found = b""
        while len(found) < most:
            # Up to the end of a page: the next may not be readable.
            part = self.read(address + len(found), min(64, 4096 - (address + len(found)) % 4096))
            found += part.split(b"\0")[0]
            if b"\0" in part:
                return decoded(found)
        raise Unreadable("a text without end")

    def std_string(self, address):
        size = self.number(address + 8, "Q")
        if size > 4096:
            raise Unreadable("a text of {} bytes".format(size))
        return decoded(self.read(self.pointer(address), size)) if size else ""

    def std_vector(self, address, element, most):
        """The address of the first element of a std::vector, and the number of elements."""
        first, end = struct.unpack("<QQ", self.read(address, 16))
        if end < first or (end - first) % element or (end - first) // element > most:
            raise Unreadable("a list that cannot be")
        return first, (end - first) // element

    def layout(self, table):
        """The numbers of a table of the library."""
        if table not in self.tables:
            address = self.address_of("reel_layout_of_" + table)
            if not address:
                raise Unreadable("the library is not loaded yet")
            numbers = {}
            while len(numbers) < 1000:
                name, value = struct.unpack("<32sQ", self.read(address + 40 * len(numbers), 40))
                if not name.rstrip(b"\0"):
                    break
                numbers[decoded(name.split(b"\0")[0])] = value
            if numbers.get("version") != 1:
                raise Unreadable("these scripts are for another version of the library")
            self.tables[table] = numbers
        return self.tables[table]


def decoded(text):
    try:
        text = text.decode("utf-8")
    except UnicodeDecodeError:
        raise Unreadable("no text") from None
    if not text.isprintable():
        raise Unreadable("no text")
    return text


def location(memory, file, line):
    if not file:
        return "an unknown place"
    name = memory.text(file)
    if not 0 <= line < 1 << 28:
        raise Unreadable("no location")
    while name.startswith("../"):
        name = name[3:]
    return "{}:{}".format(name, line)


def shape(sizes):
    return "({}{})".format(", ".join(str(size) for size in sizes), "," if len(sizes) == 1 else "")


def checked_sizes(sizes):
    if any(size < 0 for size in sizes):
        raise Unreadable("a size below 0")
    return sizes


def counted(count, noun):
    return "{:,} {}{}".format(count, noun, "" if count == 1 else "s")


class TensorValue:
    """What a tensor's body holds. Throws: Unreadable if it is not one, any more or yet."""

    def __init__(self, memory, body):
        at = memory.layout("tensors")
        self.memory = memory
        bytes_of_body = memory.read(body, at["Body"])

        def field(name, form):
            return struct.unpack_from("<" + form, bytes_of_body, at["Body." + name])[0]

        rank, dtype = field("rank", "i"), field("dtype", "B")
        device, index = field("device", "B"), struct.unpack_from("<B", bytes_of_body, at["Body.device"] + 1)[0]
        self.numel = field("numel", "q")
        self.data = field("data", "Q")
        if not 0 <= rank <= MOST_AXES or dtype >= len(DTYPES) or device >= len(DEVICES) or field("references", "I") == 0:
            raise Unreadable("no tensor")
        self.dtype = DTYPES[dtype]
        self.width = struct.calcsize(FORMATS[self.dtype])
        self.device = DEVICES[device] + (":{}".format(index) if device else "")
        self.sizes = checked_sizes(struct.unpack("<{}q".format(rank), memory.read(field("dims", "Q"), 8 * rank)))
        self.strides = struct.unpack("<{}q".format(rank), memory.read(field("strides", "Q"), 8 * rank))
        if math.prod(self.sizes) != self.numel:
            raise Unreadable("sizes that do not fit the number of elements")
        self.where = location(memory, field("file", "Q"), field("line", "i"))
        self.storage = field("storage", "Q")
        self.pending = field("marks", "B") & at["Body.pending"] != 0
        if not self.pending:
            self.check_data(at)
        leaf = field("leaf", "Q")
        self.requires_grad = field("requires_grad", "B") != 0
        self.name = memory.std_string(leaf + at["Leaf.name"]) if leaf else ""
        self.has_gradient = leaf != 0 and memory.pointer(leaf + at["Leaf.gradient"]) != 0

    def span(self):
        """The first and the last element's place, in elements from the one at all indices 0."""
        steps = [(size - 1) * stride for size, stride in zip(self.sizes, self.strides)]
        return sum(step for step in steps if step < 0), sum(step for step in steps if step > 0)

    def check_data(self, at):
        """The first word of a freed body leads to another freed block: then its elements are not in its storage."""
        start = self.memory.pointer(self.storage + at["Storage.data"])
        size = self.memory.pointer(self.storage + at["Storage.extent"]) & ((1 << 48) - 1)
        if self.numel == 0:
            return
        first, last = self.span()
        if self.data + first * self.width < start or self.data + (last + 1) * self.width > start + size:
            raise Unreadable("elements outside of the storage")

    def values(self, most):
        """The first elements in row-major order, at most `most`; None if they are not in this memory, or not yet."""
        if self.device != "cpu" or self.pending:
            return None
        count = min(most, self.numel)
        if count == 0:
            return []
        places = [0]
        for size, stride in reversed(list(zip(self.sizes, self.strides))):
            if len(places) >= count:
                break
            places = [i * stride + place for i in range(min(size, -(-count // len(places)))) for place in places]
        places = places[:count]
        first, last = min(places), max(places)
        form = FORMATS[self.dtype]
        if (last - first + 1) * self.width <= MOST_BYTES:
            block = self.memory.read(self.data + first * self.width, (last - first + 1) * self.width)
            found = struct.unpack("<{}{}".format(last - first + 1, form), block)
            found = [found[place - first] for place in places]
        else:
            found = [self.memory.number(self.data + place * self.width, form) for place in places]
        if self.dtype == "bf16":
            found = [struct.unpack("<f", struct.pack("<I", bits << 16))[0] for bits in found]
        return found

    def written(self, value):
        if self.dtype == "bool":
            return "true" if value else "false"
        return "{:.6g}".format(value) if isinstance(value, float) else str(value)

    def nested(self, values, sizes):
        if not sizes:
            return self.written(values[0])
        part = len(values) // sizes[0] if sizes[0] else 0
        return "[{}]".format(
            ", ".join(self.nested(values[i * part : (i + 1) * part], sizes[1:]) for i in range(sizes[0]))
        )

    def statistics(self):
        """Of a tensor of several elements, at most MOST_STATISTICS: a part of a sentence; empty for another."""
        if not 1 < self.numel <= MOST_STATISTICS or self.dtype == "bool":
            return ""
        values = self.values(self.numel)
        if values is None:
            return ""
        finite = [value for value in values if math.isfinite(value)]
        nans = sum(1 for value in values if value != value)
        infinities = len(values) - len(finite) - nans
        said = []
        if finite:
            mean = sum(value / len(finite) for value in finite)
            said.append("min {}, max {}, mean {:.6g}".format(self.written(min(finite)), self.written(max(finite)), mean))
        if nans:
            said.append("{:,} NaN".format(nans))
        if infinities:
            said.append("{:,} Inf".format(infinities))
        return ", ".join(said)

    def form(self):
        return "{} {} on {}".format(self.dtype, shape(self.sizes), self.device)

    def __str__(self):
        return self.describe(16)

    def describe(self, most, statistics=True):
        """One line, with at most `most` elements."""
        said = self.form()
        if self.requires_grad:
            said += ', parameter "{}"'.format(self.name) if self.name else ", parameter"
        if self.has_gradient:
            said += " with a gradient"
        said += ", made at " + self.where
        if most == 0 and not statistics:
            return said
        try:
            values = self.values(most)
            if values is None:
                said += ": its elements are " + ("pending in a batch_map" if self.pending else "on the GPU")
            elif self.numel <= most:
                said += ": " + (self.nested(values, self.sizes) if self.numel else "[]")
            elif most > 0:
                said += ": [{}, …]".format(", ".join(self.written(value) for value in values))
            found = self.statistics() if statistics else ""
            return said + ("; " + found if found else "")
        except Unreadable:
            return said + ": its elements cannot be read"


def tensor(memory, body, most=16, statistics=True):
    """Describes the tensor that has a body, by its address; never throws."""
    if body == 0:
        return "undefined tensor"
    try:
        return TensorValue(memory, body).describe(most, statistics)
    except Unreadable as error:
        return "no tensor at {:#x}: freed, overwritten or not made yet ({})".format(body, error)


class TapeValue:
    """A tape, by its address. Throws: Unreadable."""

    def __init__(self, memory, tape):
        self.memory = memory
        self.at = at = memory.layout("tensors")
        self.list = memory.pointer(tape + memory.layout("tapes")["Tape.list"])
        scopes = memory.pointer(self.list + at["TapeList.scopes"])
        first, count = memory.std_vector(scopes + at["Scopes.open"], at["OpenScope"], 100000)
        self.open = any(
            memory.pointer(first + i * at["OpenScope"] + at["OpenScope.scope"]) == tape for i in range(count)
        )
        self.size = memory.pointer(self.list + at["TapeList.entry_count"]) if self.open else 0
        if self.size > 1 << 40:
            raise Unreadable("no tape")

    def entries(self, most):
        """The last entries as (number, text), the oldest of them first."""
        at, memory = self.at, self.memory
        entry = memory.pointer(self.list + at["TapeList.last"]) if self.open else 0
        found = []
        while entry and len(found) < min(most, self.size):
            found.append((self.size - 1 - len(found), self.entry(entry)))
            entry = memory.pointer(entry + at["Entry.previous"])
        return found[::-1]

    def entry(self, entry):
        at, memory = self.at, self.memory
        op = memory.text(memory.pointer(memory.pointer(entry + at["Entry.op"]) + at["OpInfo.name"]))
        outputs = memory.number(entry + at["Entry.output_count"], "I")
        slot = memory.number(entry + at["Entry.first_output"], "I")
        slots, count = memory.std_vector(self.list + at["TapeList.slots"], at["Slot"], 1 << 32)
        forms = []
        for i in range(slot, min(slot + outputs, count, slot + 4)):
            form = memory.pointer(slots + i * at["Slot"] + at["Slot.form"])
            if not form:
                continue
            dtype, rank = memory.number(form + at["SlotForm.dtype"], "B"), memory.number(form + at["SlotForm.rank"], "i")
            if dtype >= len(DTYPES) or not 0 <= rank <= MOST_AXES:
                raise Unreadable("no shape")
            sizes = struct.unpack("<{}q".format(rank), memory.read(form + at["SlotForm.dims"], 8 * rank))
            forms.append("{} {}".format(DTYPES[dtype], shape(checked_sizes(sizes))))
        where = location(memory, memory.pointer(entry + at["Entry.file"]), memory.number(entry + at["Entry.line"], "i"))
        return "{} → {} at {}".format(op, ", ".join(forms), where)

    def __str__(self):
        return "Tape, open, {}".format(
            "1 entry" if self.size == 1 else "{:,} entries".format(self.size)) if self.open else "Tape, closed"


class ModuleValue:
    """A module, by the address of its nn::Module. Throws: Unreadable."""

    def __init__(self, memory, module):
        self.memory = memory
        self.at = at = memory.layout("modules")
        self.module = module
        first, count = memory.std_vector(module + at["Module.entries"], at["ModuleEntry"], 100000)
        training = memory.number(module + at["Module.training"], "B")
        self.type = self.type_name()
        if training > 1 or not self.type:
            raise Unreadable("no module")
        self.training = training == 1
        self.entries = range(first, first + count * at["ModuleEntry"], at["ModuleEntry"])

    def type_name(self):
        """The name of the dynamic type, without namespaces; empty if this is no object with virtual functions."""
        symbol = self.memory.symbol_at(self.memory.pointer(self.module))
        if not symbol or not symbol.startswith("vtable for "):
            return ""
        name, depth, start = symbol[len("vtable for ") :].split(" + ")[0], 0, 0
        for i, letter in enumerate(name):
            depth += (letter in "<(") - (letter in ">)")
            if letter == ":" and depth == 0:
                start = i + 1
        return name[start:]

    def parts(self, prefix="", depth=0, left=None):
        """(name, kind, address) of all parts, those of sub-modules behind each; kind: parameter, buffer or module."""
        left = left if left is not None else [MOST_PARTS]
        for entry in self.entries:
            left[0] -= 1
            if left[0] < 0 or depth > 64:
                return
            name = prefix + self.memory.std_string(entry + self.at["ModuleEntry.name"])
            kind = self.memory.number(entry + self.at["ModuleEntry.kind"], "B")
            part = self.memory.pointer(entry + self.at["ModuleEntry.part"])
            if kind > 2:
                raise Unreadable("no part of a module")
            if part == 0:
                continue
            if kind < 2:
                yield name, ["parameter", "buffer"][kind], self.memory.pointer(part - self.at["Member.part"])
                continue
            module = part - self.at["Module.part"]
            yield name, "module", module
            yield from ModuleValue(self.memory, module).parts(name + ".", depth + 1, left)

    def described_parts(self, most=4):
        """(name, text) of all parts; a name that is given but has no tensor is left out."""
        found = []
        try:
            for name, kind, address in self.parts():
                if kind == "module":
                    found.append((name, ModuleValue(self.memory, address).summary()))
                elif address:
                    text = tensor(self.memory, address, most)
                    found.append((name, ("buffer " if kind == "buffer" else "") + text))
        except Unreadable as error:
            found.append(("…", "the rest cannot be read ({})".format(error)))
        return found

    def summary(self):
        tensors, numbers = 0, 0
        try:
            for _, kind, address in self.parts():
                if kind == "parameter" and address:
                    tensors += 1
                    numbers += TensorValue(self.memory, address).numel
        except Unreadable:
            return "{}, of which not all can be read".format(self.type)
        said = "{}, {} of {}".format(self.type, counted(tensors, "parameter"), counted(numbers, "number"))
        return said + ("" if self.training else ", in evaluation mode")

    def __str__(self):
        return self.summary()
