"""For gdb, stopped in the caller of `stop`: overwrites what tensors, modules and tapes hold, one word at a time, and prints them."""

import random
import struct
import time

import gdb
import reel_gdb

seed = random.randrange(1 << 32)
print("seed", seed)
numbers = random.Random(seed)
inferior = gdb.selected_inferior()
VALUES = ["model", "model.hidden", "tape", "matrix", "weight", "transposed", "several", "shape", "number"]


def value_of(expression):
    return int(gdb.parse_and_eval("(unsigned long)(" + expression + ")"))


def word(address):
    return struct.unpack("<Q", inferior.read_memory(address, 8).tobytes())[0]


TAPE_LIST = word(value_of("&tape") + reel_gdb.memory.layout("tapes")["Tape.list"])
# Where objects begin, and how many words of them are overwritten.
places = [(value_of("&model"), 60), (value_of("&tape"), 8), (value_of("&shape"), 9), (value_of("&number"), 4),
          (TAPE_LIST, 60), (value_of("matrix.body_"), 20), (value_of("weight.body_"), 20),
          (value_of("transposed.body_"), 20)]
places += [(word(TAPE_LIST + 8 * i), 24) for i in range(12)]
places += [(word(value_of("&model") + 8 * i), 28) for i in range(2, 10)]
pointers = [address for address, _ in places if address]
slowest, overwritten = 0, 0
for _ in range(1500):
    address, words = numbers.choice(places)
    address += 8 * numbers.randrange(words)
    try:
        before = inferior.read_memory(address, 8).tobytes()
        new = numbers.choice([0, 1, 7, 1 << 40, numbers.randrange(1 << 64), (1 << 64) - 1, numbers.choice(pointers) + 8 * numbers.randrange(20)])
        inferior.write_memory(address, struct.pack("<Q", new))
    except gdb.error:
        continue
    overwritten += 1
    for expression in VALUES:
        began = time.process_time()
        try:
            printed = gdb.execute("print " + expression, to_string=True)
        except gdb.MemoryError:  # gdb says so itself: of a vector whose pointers were overwritten
            continue
        slowest = max(slowest, time.process_time() - began)
        if "Python Exception" in printed or "Traceback" in printed:
            print("failed with {:#x} at {:#x}: {}".format(new, address, printed))
    inferior.write_memory(address, before)
print("overwritten {} times, the slowest value in {:.1f} s".format(overwritten, slowest))
