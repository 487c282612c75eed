"""Prints reel's tensors, shapes, tapes and modules in gdb: at any level of optimisation, and of core files.

    (gdb) print x
    $1 = f32 (2, 3) on cpu, made at net.cpp:12: [[1, 2, 3], [4, 5, 6]]; min 1, max 6, mean 3.5
    (gdb) set reel-values 100        shows as many elements of a tensor in place of 16

gdb loads it by itself where the library is installed in the system's folders; `source tools/gdb/reel_gdb.py` loads it anywhere.
"""

import os
import sys

import gdb
import gdb.printing
import gdb.types

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import reel_values  # noqa: E402

MOST_ENTRIES = 8  # of a tape that are shown


class GdbMemory(reel_values.Memory):
    """The memory of the selected program or core file."""

    def read_memory(self, address, count):
        try:
            return gdb.selected_inferior().read_memory(address, count).tobytes()
        except (gdb.error, OverflowError, ValueError) as error:
            raise reel_values.Unreadable(str(error)) from None

    def address_of(self, symbol):
        try:
            return int(gdb.parse_and_eval("(unsigned long)&" + symbol))
        except gdb.error:
            return None

    def symbol_at(self, address):
        try:
            found = gdb.execute("info symbol {:#x}".format(address), to_string=True)
        except gdb.error:
            return None
        return found.split(" in section ")[0].strip()


memory = GdbMemory()


def forget_tables(_):
    memory.tables.clear()


gdb.events.new_objfile.connect(forget_tables)
gdb.events.exited.connect(forget_tables)


class MostValues(gdb.Parameter):
    """How many elements of a tensor are shown."""

    set_doc = "Set how many elements of a tensor are shown."
    show_doc = "Show how many elements of a tensor are shown."

    def __init__(self):
        super().__init__("reel-values", gdb.COMMAND_DATA, gdb.PARAM_ZUINTEGER)
        self.value = 16

    def get_set_string(self):
        return ""

    def get_show_string(self, value):
        return "At most {} elements of a tensor are shown.".format(value)


most_values = MostValues()


def pointer_in(value, field):
    """A pointer that is a member of a value, which may be in a register."""
    return int(value[field].cast(gdb.lookup_type("unsigned long")))


def address(value):
    if value.address is None:
        raise reel_values.Unreadable("it is in registers")
    return int(value.address)


class Printer:
    def __init__(self, value):
        self.value = value
        memory.begin()

    def to_string(self):
        try:
            return self.describe()
        except (reel_values.Unreadable, gdb.error) as error:
            return "cannot be read ({})".format(error)


def described_tensor(body):
    # The arguments in a backtrace are kept short.
    short = hasattr(gdb, "print_options") and gdb.print_options().get("summary", False)
    return reel_values.tensor(memory, body, 0 if short else most_values.value, not short)


class TensorPrinter(Printer):
    def describe(self):
        try:
            body = pointer_in(self.value, "body_")
        except gdb.error:  # clang may leave out what a class holds
            body = memory.pointer(address(self.value))
        return described_tensor(body)


class ShapePrinter(Printer):
    def describe(self):
        rank = int(self.value["rank_"])
        if not 0 <= rank <= reel_values.MOST_AXES:
            raise reel_values.Unreadable("freed, overwritten or not made yet")
        return reel_values.shape([int(self.value["sizes_"][i]) for i in range(rank)])


class ArgPrinter(Printer):
    def describe(self):
        kind = int(self.value["kind_"])
        if kind == 0:
            tensor = pointer_in(self.value, "tensor_")
            return described_tensor(memory.pointer(tensor))
        if kind == 3:
            return "{:.6g}".format(float(self.value["floating_"]))
        number = int(self.value["integer_"])
        return str(number) if kind == 2 else "true" if number else "false"


class LocationPrinter(Printer):
    def describe(self):
        return reel_values.location(memory, pointer_in(self.value, "file"), int(self.value["line"]))


class DevicePrinter(Printer):
    def describe(self):
        kind, index = int(self.value["type"]), int(self.value["index"])
        return "cpu" if kind == 0 else "cuda:{}".format(index)


class TapePrinter(Printer):
    def tape(self):
        return reel_values.TapeValue(memory, address(self.value))

    def describe(self):
        return str(self.tape())

    def children(self):
        try:
            for number, text in self.tape().entries(MOST_ENTRIES):
                yield "[{}]".format(number), text
        except (reel_values.Unreadable, gdb.error):
            yield "…", "the entries cannot be read"


class ModulePrinter(Printer):
    def describe(self):
        return reel_values.ModuleValue(memory, address(self.value)).summary()

    def children(self):
        try:
            yield from reel_values.ModuleValue(memory, address(self.value)).described_parts()
        except (reel_values.Unreadable, gdb.error):
            return
        # Members of the program's own type beside its parts.
        for field in fields_of(self.value.type):
            if not field.is_base_class and hasattr(field, "bitpos") and not is_part(field.type):
                yield field.name or "", self.value[field]


PRINTERS = {
    "reel::Tensor": TensorPrinter,
    "reel::Shape": ShapePrinter,
    "reel::Arg": ArgPrinter,
    "reel::Location": LocationPrinter,
    "reel::Device": DevicePrinter,
    "reel::Tape": TapePrinter,
    "reel::nn::Module": ModulePrinter,
}


def fields_of(struct):
    try:
        return struct.strip_typedefs().fields()
    except TypeError:
        return []


def printer_of(struct, depth=0):
    """The printer for a type, that of its first base class which has one; None if there is none."""
    struct = struct.unqualified().strip_typedefs()
    if struct.code != gdb.TYPE_CODE_STRUCT or depth > 32:
        return None
    name = struct.tag or struct.name or ""
    if name in PRINTERS:
        return PRINTERS[name]
    if name.startswith("std::"):
        return None
    bases = [field for field in fields_of(struct) if field.is_base_class]
    # gcc describes a class with virtual functions only where these are compiled: in the library.
    if not bases:
        return ModulePrinter if name.startswith("reel::nn::") and not fields_of(struct) else None
    # Others than the first do not begin where the object does.
    return printer_of(bases[0].type, depth + 1)


def is_part(struct):
    found = printer_of(struct)
    return found is ModulePrinter or (struct.strip_typedefs().tag or "") in ("reel::nn::Parameter", "reel::nn::Buffer")


class Lookup(gdb.printing.PrettyPrinter):
    def __init__(self):
        super().__init__("reel")

    def __call__(self, value):
        try:
            struct = value.type
            if struct.code in (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF):
                struct = struct.target()
            found = printer_of(struct)
            if found is None:
                return None
            return found(value.referenced_value() if struct is not value.type else value)
        except gdb.error:
            return None


def register(objfile=None):
    gdb.printing.register_pretty_printer(objfile, Lookup(), replace=True)


# Sourced by hand rather than imported by the library's own script.
if __name__ == "__main__":
    register()
