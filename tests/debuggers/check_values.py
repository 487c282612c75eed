#!/usr/bin/env python3
"""check_values.py ROOT [SEED]: reel_values.py describes random memory, full of pointers into itself, without another exception than
Unreadable and in bounded time."""

import os
import random
import struct
import sys
import time

root, seed = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32)
sys.path.insert(0, os.path.join(root, "tools/gdb"))
import reel_values  # noqa: E402

START, SIZE = 0x10000, 1 << 14
TENSORS = ["Body.data", "Body.dims", "Body.strides", "Body.numel", "Body.rank", "Body.dtype", "Body.references", "Body.device",
           "Body.requires_grad", "Body.marks", "Body.line", "Body.file", "Body.storage", "Body.leaf", "Storage.data", "Storage.extent",
           "Leaf.gradient", "Leaf.name", "OpInfo.name", "Entry.op", "Entry.previous", "Entry.file", "Entry.line",
           "Entry.first_output", "Entry.output_count", "SlotForm.dtype", "SlotForm.rank", "SlotForm.dims", "TapeList.scopes",
           "TapeList.last", "TapeList.slots", "TapeList.entry_count", "Slot.form", "Scopes.open", "OpenScope.scope"]
MODULES = ["Module.part", "Module.entries", "Module.training", "Member.part", "ModuleEntry.name", "ModuleEntry.kind",
           "ModuleEntry.part"]


class RandomMemory(reel_values.Memory):
    def __init__(self, numbers):
        super().__init__()
        words = [numbers.choice([0, 1, 2, 3, numbers.randrange(1 << 64), START + 8 * numbers.randrange(SIZE // 8)])
                 for _ in range(SIZE // 8)]
        self.bytes = struct.pack("<{}Q".format(len(words)), *words)
        self.tables = {
            "tensors": {"version": 1, "Body": 128, "Body.pending": 8, "Entry": 64, "Slot": 16, "OpenScope": 40,
                        **{name: 8 * numbers.randrange(12) for name in TENSORS}},
            "tapes": {"version": 1, "Tape.list": 8 * numbers.randrange(4)},
            "modules": {"version": 1, "Module": 64, "ModuleEntry": 56, **{name: 8 * numbers.randrange(4) for name in MODULES}},
        }

    def read_memory(self, address, count):
        if not START <= address <= address + count <= START + SIZE:
            raise reel_values.Unreadable("memory")
        return self.bytes[address - START : address - START + count]

    def symbol_at(self, address):
        return "vtable for reel::nn::Linear + 16" if address % 16 == 0 else None


def describe_module(memory, at):
    module = reel_values.ModuleValue(memory, at)
    module.summary()
    module.described_parts()


def describe_tape(memory, at):
    tape = reel_values.TapeValue(memory, at)
    str(tape)
    tape.open, tape.size = True, 100
    tape.entries(8)


print("seed", seed)
numbers = random.Random(seed)
slowest, described = 0.0, 0
for _ in range(300):
    memory = RandomMemory(numbers)
    for describe in (reel_values.tensor, describe_module, describe_tape):
        for _ in range(10):
            memory.begin()
            began = time.process_time()
            try:
                describe(memory, START + 8 * numbers.randrange(SIZE // 8))
                described += 1
            except reel_values.Unreadable:
                pass
            slowest = max(slowest, time.process_time() - began)
print("{} of 9000 described, the slowest in {:.2f} s".format(described, slowest))
sys.exit(0 if slowest < 10 and described > 0 else 1)
