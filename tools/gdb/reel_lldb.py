"""Prints reel's tensors, shapes, tapes and modules in lldb.

    (lldb) command script import /usr/share/reel0.2/reel_lldb.py
    (lldb) frame variable x
    (reel::Tensor) x = f32 (2, 3) on cpu, made at net.cpp:12: [[1, 2, 3], [4, 5, 6]]; min 1, max 6, mean 3.5
    (lldb) reel-module model        lists the parts of a module, whose own type may be the program's

In a program of one's own the line belongs in ~/.lldbinit.
"""

import os
import sys

import lldb

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import reel_values  # noqa: E402

MOST_ENTRIES = 8  # of a tape that are shown


class LldbMemory(reel_values.Memory):
    """The memory of a process or a core file."""

    def __init__(self, process):
        super().__init__()
        self.process = process

    def read_memory(self, address, count):
        error = lldb.SBError()
        found = self.process.ReadMemory(address, count, error)
        if not error.Success() or found is None or len(found) != count:
            # Constants are in the program's and the library's files, and not in a core file.
            error = lldb.SBError()
            target = self.process.GetTarget()
            found = target.ReadMemory(target.ResolveLoadAddress(address), count, error)
        if not error.Success() or found is None or len(found) != count:
            raise reel_values.Unreadable("memory at {:#x}".format(address))
        return bytes(found)

    def address_of(self, symbol):
        target = self.process.GetTarget()
        for context in target.FindSymbols(symbol):
            address = context.GetSymbol().GetStartAddress().GetLoadAddress(target)
            if address != lldb.LLDB_INVALID_ADDRESS:
                return address
        return None

    def symbol_at(self, address):
        symbol = self.process.GetTarget().ResolveLoadAddress(address).GetSymbol()
        return symbol.GetName() if symbol.IsValid() else None


def memory_of(value):
    return LldbMemory(value.GetProcess())


def raw(value):
    value = value.GetNonSyntheticValue()
    return value.Dereference() if value.GetType().IsReferenceType() else value


def address(value):
    found = value.GetLoadAddress()
    if found == lldb.LLDB_INVALID_ADDRESS:
        raise reel_values.Unreadable("it is in registers")
    return found


def member(value, name):
    found = value.GetChildMemberWithName(name)
    if not found.IsValid():
        raise reel_values.Unreadable("it is optimised out")
    return found.GetValueAsUnsigned()


def guarded(describe):
    def summary(value, _):
        try:
            return describe(memory_of(value), raw(value))
        except reel_values.Unreadable as error:
            return "cannot be read ({})".format(error)

    return summary


@guarded
def tensor(memory, value):
    body = value.GetChildMemberWithName("body_")
    pointer = body.GetValueAsUnsigned() if body.IsValid() else memory.pointer(address(value))
    return reel_values.tensor(memory, pointer)


@guarded
def shape(memory, value):
    rank = member(value, "rank_")
    if rank > reel_values.MOST_AXES:
        raise reel_values.Unreadable("freed, overwritten or not made yet")
    sizes = value.GetChildMemberWithName("sizes_")
    return reel_values.shape([sizes.GetChildAtIndex(i).GetValueAsSigned() for i in range(rank)])


@guarded
def operand(memory, value):
    kind = member(value, "kind_")
    if kind == 0:
        return reel_values.tensor(memory, memory.pointer(operand_member(value, "tensor_").GetValueAsUnsigned()))
    if kind == 3:
        return "{:.6g}".format(float(operand_member(value, "floating_").GetValue()))
    number = operand_member(value, "integer_").GetValueAsSigned()
    return str(number) if kind == 2 else "true" if number else "false"


def operand_member(value, name):
    """A member of an Arg's union, which has no name."""
    found = value.GetChildMemberWithName(name)
    return found if found.IsValid() else value.GetChildAtIndex(0).GetChildMemberWithName(name)


@guarded
def tape(memory, value):
    found = reel_values.TapeValue(memory, address(value))
    entries = ["\n  [{}] = {}".format(number, text) for number, text in found.entries(MOST_ENTRIES)]
    return str(found) + "".join(entries)


def described_module(memory, module):
    found = reel_values.ModuleValue(memory, module)
    return found.summary() + "".join("\n  {} = {}".format(name, text) for name, text in found.described_parts())


@guarded
def module(memory, value):
    return described_module(memory, address(value))


def list_module(debugger, command, result, _):
    """reel-module EXPRESSION: the parameters, buffers and sub-modules of a module."""
    frame = debugger.GetSelectedTarget().GetProcess().GetSelectedThread().GetSelectedFrame()
    value = frame.GetValueForVariablePath(command.strip())
    if not value.IsValid():
        return result.SetError("reel-module: there is no variable '{}' in this frame".format(command.strip()))
    try:
        value = raw(value)
        where = value.GetValueAsUnsigned() if value.GetType().IsPointerType() else address(value)
        result.AppendMessage(described_module(memory_of(value), where))
    except reel_values.Unreadable as error:
        result.SetError("reel-module: {} cannot be read ({})".format(command.strip(), error))


def __lldb_init_module(debugger, _):
    for function, name in [
        ("tensor", "^reel::(Tensor|Indexed|nn::(Member|Parameter|Buffer))$"),
        ("shape", "^reel::Shape$"),
        ("operand", "^reel::Arg$"),
        ("tape", "^reel::Tape$"),
        # gcc describes a class with virtual functions only where these are compiled: in the library.
        ("module", "^reel::nn::(Module|ModuleList|Sequential|Linear|Embedding|LSTM|GRU|RNN|Conv1d|Conv2d|LayerNorm)$"),
    ]:
        debugger.HandleCommand('type summary add -x "{}" -F {}.{} -w reel'.format(name, __name__, function))
    debugger.HandleCommand("type category enable reel")
    debugger.HandleCommand("command script add -f {}.list_module reel-module".format(__name__))
