"""Shows the stacks of batch_map's examples in gdb, also of those that are suspended.

    (gdb) source tools/gdb/fibres.py
    (gdb) fibres            the examples under way, the op that each waits for, and how many calls of each are pending
    (gdb) fibre 3           the stack of one of them
    (gdb) fibre 3 stay      … and stays there: frame, up, print and info locals look at it, until "fibre back"

The process must be stopped in an example or in the library's scheduler, and the library be compiled with debug information
(meson setup -Ddebug=true). For x86-64, where Boost.Context keeps a suspended stack's registers at its top.
"""

import gdb

# Where jump_fcontext stores them, in bytes from the context's address.
REGISTERS = {"r12": 0x8, "r13": 0x10, "r14": 0x18, "r15": 0x20, "rbx": 0x28, "rbp": 0x30, "rip": 0x38}
AFTER = 0x40  # the stack pointer behind them

before = {}  # the registers of the thread itself, while a fibre is shown


def scheduler():
    """The scheduler of the selected thread, as a pointer."""
    frame = gdb.newest_frame()
    while frame:
        if frame.name() and frame.name().startswith("reel::detail::Scheduler::"):
            try:
                this = frame.read_var("this")
                if not this.is_optimized_out:
                    return this
            except ValueError:
                pass
        frame = frame.older()
    context = gdb.parse_and_eval("reel::detail::current_context")
    if context and context["interceptor"]:
        return context["interceptor"].cast(gdb.lookup_type("reel::detail::Scheduler").pointer())
    raise gdb.GdbError("fibres: this thread is in no batch_map")


def elements(vector):
    """The elements of a std::vector."""
    members = vector["_M_impl"]
    return [members["_M_start"][i] for i in range(int(members["_M_finish"] - members["_M_start"]))]


def tasks():
    pointers = scheduler()["tasks_"]["_M_impl"]
    task = gdb.lookup_type("reel::detail::Task").pointer()
    at = pointers["_M_start"].cast(task.pointer())
    count = pointers["_M_finish"] - pointers["_M_start"]
    return [at[i] for i in range(int(count))]


def suspended_at(task):
    """The address of a suspended fibre's context; 0 if it runs or has ended."""
    return int(task["fibre"]["inner_"]["fctx_"])


def queued_calls():
    """The calls that tasks wait for, and the numbers of those whose results are pending, by the address of the task."""
    waiting, pending = {}, {}
    queue = scheduler()["queue_"]
    for kind in elements(queue["kinds_"]):
        for bucket in elements(kind["buckets"])[int(kind["least_depth"]):int(kind["depths"])]:
            if bucket["filling"] != queue["filling_"]:
                continue
            for k in range(int(bucket["count"])):
                one = bucket["calls"][k]
                task = int(one["task"])
                if one["context"]:
                    waiting[task] = one["call"].address
                else:
                    pending[task] = pending.get(task, 0) + 1
    return waiting, pending


def leave():
    if before:
        # In an outer frame, a register is where an inner one has saved it.
        gdb.execute("frame 0", to_string=True)
    for name, value in before.items():
        gdb.execute("set ${} = {}".format(name, value))
    before.clear()


def enter(address):
    memory = gdb.selected_inferior()
    gdb.execute("frame 0", to_string=True)
    for name in list(REGISTERS) + ["rsp"]:
        before[name] = int(gdb.parse_and_eval("(unsigned long)$" + name))
    for name, offset in REGISTERS.items():
        value = int.from_bytes(memory.read_memory(address + offset, 8).tobytes(), "little")
        gdb.execute("set ${} = {}".format(name, value))
    gdb.execute("set $rsp = {}".format(address + AFTER))


class Fibres(gdb.Command):
    """Lists the examples under way in batch_map, and the op that each waits for."""

    def __init__(self):
        super().__init__("fibres", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        leave()
        waiting, pending = queued_calls()
        for number, task in enumerate(tasks()):
            address = suspended_at(task)
            call = waiting.get(int(task))
            if call:
                state = "waits for {}, called at {}:{}".format(
                    call["op"]["name"].string(), call["where"]["file"].string(), int(call["where"]["line"]))
            else:
                state = "suspended" if address else "runs or has ended"
            if int(task) in pending:
                state += ", {} calls pending".format(pending[int(task)])
            print("{:4}  example {:4}  {}".format(number, int(task["index"]), state))


class Fibre(gdb.Command):
    """fibre N: the stack of a suspended example. fibre N stay: and selects it. fibre back: the thread's own stack."""

    def __init__(self):
        super().__init__("fibre", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        words = argument.split()
        leave()
        if words == ["back"]:
            return
        if not words or not words[0].isdigit() or words[1:] not in ([], ["stay"]):
            raise gdb.GdbError("fibre: wants a number of `fibres`, `N stay` or `back`")
        all_tasks = tasks()
        if int(words[0]) >= len(all_tasks):
            raise gdb.GdbError("fibre: there is no fibre {}; `fibres` lists them".format(words[0]))
        address = suspended_at(all_tasks[int(words[0])])
        if not address:
            raise gdb.GdbError("fibre: that one is not suspended; `bt` shows the one that runs")
        enter(address)
        try:
            gdb.execute("backtrace")
        finally:
            if words[1:] != ["stay"]:
                leave()


Fibres()
Fibre()
