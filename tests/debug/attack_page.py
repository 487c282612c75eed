#!/usr/bin/env python3
"""attack_page.py SERVE_SESSION: another user of the machine, without the token of a session's page, neither ends the program, nor
keeps it from ending, nor costs it memory or descriptors, nor keeps the page from the client that has the token.

100 requests of each kind; with REEL_ENDURANCE=1 in the environment 10,000. They come from REEL_SEED, which is printed."""

import gzip
import json
import os
import random
import re
import select
import signal
import socket
import struct
import sys
import threading
import time
from pathlib import Path

from use_page import Program, check, faults

IS_LONG = os.environ.get("REEL_ENDURANCE") == "1"
COUNT = 10_000 if IS_LONG else 100
SEED = int(os.environ.get("REEL_SEED", "1"))
UNPRIVILEGED = 65534
ATTACKERS = 2
MOST_MEMORY = 50  # MiB that the program may grow by
MOST_DESCRIPTORS = 100
MOST_LATENCY = 2  # s, on a machine that does much else
MOST_AT_END = 1  # s
ENDLESS = 4 << 20  # bytes after which an endless request is taken to be read to its end
HOST = b"Host: 127.0.0.1\r\n"
GZIP = gzip.compress(bytes(32 << 20))
# 200 MiB of zeros, as Brotli compresses them.
BROTLI = bytes.fromhex(
    "cfffff7f002400e2b14072effff9ffff0f8004401c1680eefd3fffffff01900088c302d0bdffe7ffff3f001200715800baf7fffcffff074002200e0b40f7fe9fffff"
    "ff004800c46101e8defff3ffff1f000980382c00ddfb7ffeffff032001108705a07bffcfffff7f002400e2b00074effff9ffff0f8004401c1680eefd3fffffff0190"
    "0088c302d0bdffe7ffff3f001200715800baf7fff9ffff074002200e0b40f7fe0f")
METHODS = ("GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "get", "", "\x00")


class Attacker:
    """Requests of a client that has all but one letter of the token."""

    def __init__(self, port, token, seed):
        self.port, self.token, self.random, self.held = port, token, random.Random(seed), []

    def connect(self):
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=2)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def send(self, data, ends=False):
        with self.connect() as connection:
            connection.sendall(data)
            if ends:
                connection.shutdown(socket.SHUT_WR)
            while connection.recv(1 << 16):
                pass

    def send_endlessly(self, head, piece):
        with self.connect() as connection:
            connection.sendall(head)
            for _ in range(ENDLESS // len(piece)):
                connection.sendall(piece)

    def keep(self, data):
        """Sends, and does not close; at most 300 at once."""
        self.held.append(self.connect())
        self.held[-1].sendall(data)
        if len(self.held) > 300:
            self.held.pop(0).close()

    def path(self):
        return b"/" + self.token + self.random.choice((b"/", b"/data", b"/command", b"/logs", b""))

    def post(self, headers, body=b""):
        return b"POST " + self.path() + b" HTTP/1.1\r\n" + HOST + headers + b"\r\n" + body

    def a_long_path(self):
        self.send(b"GET /" + b"a" * 8100 + b" HTTP/1.1\r\n" + HOST + b"\r\n")

    def gzip(self):
        self.send(self.post(b"Content-Encoding: gzip\r\nContent-Length: %d\r\n" % len(GZIP), GZIP))

    def brotli(self):
        self.send(self.post(b"Content-Encoding: br\r\nContent-Length: %d\r\n" % len(BROTLI), BROTLI))

    def endless_chunks(self):
        self.send_endlessly(self.post(b"Transfer-Encoding: chunked\r\n"), b"10000\r\n" + b"x" * 0x10000 + b"\r\n")

    def an_endless_body(self):
        self.send_endlessly(self.post(b"Content-Length: 1000000000000\r\n"), b"x" * 0x10000)

    def a_body_of_no_length(self):
        self.send_endlessly(self.post(b""), b"x" * 0x10000)

    def endless_headers(self):
        self.send_endlessly(b"POST " + self.path() + b" HTTP/1.1\r\n", b"X: y\r\n" * 10_000)

    def an_endless_request_line(self):
        self.send_endlessly(b"GET /", b"a" * 0x10000)

    def a_header_byte_a_second(self):
        self.keep(b"GET " + self.path() + b" HTTP/1.1\r\n"[:self.random.randrange(12)])
        for connection in self.random.sample(self.held, min(len(self.held), 20)):
            try:
                connection.send(b"x")
            except OSError:
                self.held.remove(connection)

    def nothing(self):
        self.keep(b"")

    def an_answer_that_is_not_read(self):
        self.keep(b"GET " + self.path() + b" HTTP/1.1\r\n" + HOST + b"\r\n")

    def many_requests_at_once(self):
        self.send((b"GET " + self.path() + b" HTTP/1.1\r\n" + HOST + b"\r\n") * 100)

    def a_token_wrong_by_a_letter(self):
        self.send(self.post(b"Content-Length: 0\r\n"))

    def a_wrong_host(self):
        self.send(b"GET " + self.path() + b" HTTP/1.1\r\nHost: attacker.example\r\n\r\n")

    def other_methods(self):
        self.send(self.random.choice(METHODS).encode() + b" " + self.path() + b" HTTP/1.1\r\n" + HOST + b"\r\n")

    def noise(self):
        self.send(self.random.randbytes(self.random.randrange(1, 4000)), ends=True)

    def half_closed(self):
        request = self.post(b"Content-Length: 10\r\n")
        self.send(request[:self.random.randrange(len(request))], ends=True)

    def resets(self):
        with self.connect() as connection:
            connection.sendall(self.post(b"Content-Length: 10\r\n"))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def mutated(self):
        request = bytearray(self.post(b"Content-Length: 3\r\nContent-Encoding: br\r\nTransfer-Encoding: chunked\r\n", b"3\r\nabc\r\n0\r\n\r\n"))
        for _ in range(self.random.randrange(1, 9)):
            at = self.random.randrange(len(request))
            request[at:at + self.random.randrange(3)] = self.random.randbytes(self.random.randrange(4))
        self.send(bytes(request), ends=True)

    def attack(self, count):
        """Sends so many requests of each kind, in a random order. Returns how many of each kind a connection took."""
        kinds = [name for name, f in vars(Attacker).items() if callable(f) and name not in
                 ("__init__", "connect", "send", "send_endlessly", "keep", "path", "post", "attack")]
        order = kinds * count
        self.random.shuffle(order)
        sent = dict.fromkeys(kinds, 0)
        for kind in order:
            try:
                getattr(self, kind)()
            except ConnectionRefusedError:
                break
            except OSError:  # closed by the server, as it may be
                pass
            sent[kind] += 1
        return sent


def start_attacker(port, token, number, stays):
    """A process of another user, which attacks, writes how much it has sent, and holds its connections until it is killed."""
    read, write = os.pipe()
    parent, child = os.getpid(), os.fork()
    if child:
        os.close(write)
        return child, read
    try:
        if os.getuid() == 0:
            os.setgroups([])
            os.setgid(UNPRIVILEGED)
            os.setuid(UNPRIVILEGED)
        attacker = Attacker(port, token, SEED + number)
        os.write(write, json.dumps(attacker.attack(COUNT // ATTACKERS)).encode())
        if stays:
            for _ in range(300):
                attacker.keep(b"GET /")
        os.close(write)
        while os.getppid() == parent:
            time.sleep(0.1)
    finally:
        os._exit(1)


def end_attacker(child, pipe):
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(pipe)


def wrong_by_a_letter(token):
    return (token[:-1] + ("0" if token[-1] != "0" else "1")).encode()


def status_of(program, name):
    return int(re.search(rf"^{name}:\s+(\d+)", Path(f"/proc/{program.process.pid}/status").read_text(), re.M)[1])


class Watched:
    """What the program takes, and how long the client with the token waits, while others attack."""

    def __init__(self, program):
        self.program, self.before = program, status_of(program, "VmRSS")
        self.most_descriptors, self.waits, self.lost = 0, [], 0

    def ask(self):
        self.most_descriptors = max(self.most_descriptors, len(os.listdir(f"/proc/{self.program.process.pid}/fd")))
        begin = time.monotonic()
        try:
            if "state" not in self.program.data():
                self.lost += 1
        except OSError:
            self.lost += 1
        self.waits.append(time.monotonic() - begin)

    def growth(self):
        return (status_of(self.program, "VmHWM") - self.before) / 1024


def limited(path, steps, files=1024):
    """The program with a stack of 4 MiB, and so many descriptors at most."""
    program = Program("/bin/sh", "-c", f'ulimit -s 4096; ulimit -n {files}; exec "$@"', "sh", path, steps)
    program.stopped()
    return program


def check_attack(path, files):
    program = limited(path, "1000000", files)
    watched = Watched(program)
    begin = time.monotonic()
    attackers = [start_attacker(program.port, wrong_by_a_letter(program.token), number, False) for number in range(ATTACKERS)]
    sent = {}
    for child, pipe in attackers:
        while not select.select([pipe], [], [], 0.01)[0]:
            watched.ask()
        for kind, count in json.loads(os.read(pipe, 1 << 16) or "{}").items():
            sent[kind] = sent.get(kind, 0) + count
        end_attacker(child, pipe)
    print(f"{time.monotonic() - begin:.1f} s, requests: " + ", ".join(f"{count} {kind}" for kind, count in sent.items()))
    alive = program.process.poll() is None
    check("the program runs on", alive and min(sent.values(), default=0) == COUNT // ATTACKERS * ATTACKERS, (program.process.poll(), sent))
    if alive:
        check(f"its memory has grown by less than {MOST_MEMORY} MiB", watched.growth() < MOST_MEMORY, watched.growth())
        print(f"memory: {watched.growth():.1f} MiB more; at most {watched.most_descriptors} descriptors; "
              f"{len(watched.waits)} answers, the latest after {max(watched.waits):.2f} s, {watched.lost} lost")
        check("it takes few descriptors", watched.most_descriptors < MOST_DESCRIPTORS, watched.most_descriptors)
        check("the client with the token gets its answers", watched.lost == 0 and max(watched.waits) < MOST_LATENCY,
              (watched.lost, max(watched.waits)))
        printed = program.command("step")
        check("it steps after the attack", re.search(r"stopped: %\d+ ", printed), printed)
    program.end()


def check_end(path):
    program = limited(path, "1")
    child, pipe = start_attacker(program.port, wrong_by_a_letter(program.token), ATTACKERS, True)
    while os.read(pipe, 1 << 16):
        pass
    with socket.create_connection(("127.0.0.1", program.port)) as slow:  # has the token, and never ends its request
        slow.sendall(f"POST /{program.token}/data HTTP/1.1\r\n".encode())
        begin = time.monotonic()
        program.ask("command", "cont")
        try:
            status = program.process.wait(60)
        except Exception:
            status = None
        seconds = time.monotonic() - begin
    print(f"the end took {seconds:.2f} s")
    check("a program that ends waits for no client", status == 0 and seconds < MOST_AT_END, (status, seconds))
    end_attacker(child, pipe)
    program.end()


def check_slow_clients(path):
    """A byte four times a second, in each part of a request."""
    program = limited(path, "1")
    line = f"POST /{program.token}/data HTTP/1.1\r\n".encode()
    heads = {"line": b"GET /", "header": line, "body": line + HOST + b"Content-Length: 1000\r\n\r\n"}
    slow = {part: socket.create_connection(("127.0.0.1", program.port)) for part in heads}
    for part, connection in slow.items():
        connection.sendall(heads[part])
        connection.setblocking(False)
    begin = time.monotonic()
    while slow and time.monotonic() - begin < 20:
        time.sleep(0.25)
        for part in list(slow):
            try:
                slow[part].send(b"x")
                is_open = bool(slow[part].recv(1))
            except BlockingIOError:
                is_open = True
            except OSError:
                is_open = False
            if not is_open:
                seconds = time.monotonic() - begin
                check(f"a client whose {part} comes slowly is disconnected", 4 < seconds < 10, seconds)
                slow.pop(part).close()
    check("no slow client is waited for", not slow, list(slow))
    program.end()


def answer_to(program, sent):
    """The status of the answer to what is sent before anything else is, 0 if there is none within 0.3 s."""
    with socket.create_connection(("127.0.0.1", program.port), timeout=0.3) as connection:
        try:
            connection.sendall(sent)
            found = re.match(rb"HTTP/1\.1 (\d+) ", connection.recv(1 << 12))
        except OSError:
            found = None
        return int(found[1]) if found else 0


def check_routes(path):
    source = (Path(__file__).resolve().parents[2] / "lib/debug/session/live_page.cpp").read_text()
    routes = [""] + re.findall(r'what == "(\w+)"', source)
    check("there are routes", "command" in routes and "value" in routes, routes)
    program = limited(path, "1")
    wrong = {}
    wrong_token = wrong_by_a_letter(program.token).decode()
    for method in METHODS:
        for route in [*routes, "other"]:
            for token in (wrong_token, program.token[:-1], program.token + "0", program.token.upper() + "x", ""):
                line = f"{method} /{token}/{route} HTTP/1.1\r\n".encode()
                if (status := answer_to(program, line)) != 404:
                    wrong[line] = status
            fits = method == ("GET" if route in ("", "logs") else "POST")
            line = f"{method} /{program.token}/{route} HTTP/1.1\r\n".encode()
            if not fits and (status := answer_to(program, line)) != 405:
                wrong[line] = status
    check("the line of a request is checked before anything else is read", not wrong, f"{len(wrong)} of them: {list(wrong.items())[:3]}")
    head = f"POST /{program.token}/data HTTP/1.1\r\nHost: 127.0.0.1\r\n".encode()
    for sentence, rest, wanted in (("chunked", b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 415),
                                   ("compressed", b"Content-Encoding: gzip\r\nContent-Length: 0\r\n\r\n", 415),
                                   ("too long", b"Content-Length: 1000000000000\r\n\r\n", 413),
                                   ("shorter than empty", b"Content-Length: -1\r\n\r\n", 400)):
        status = answer_to(program, head + rest)
        check(f"a body that is {sentence} is refused", status == wanted, status)
    program.end()


def main():
    print(f"REEL_SEED={SEED}")
    path = Path(sys.argv[1]).absolute()
    # Much of the memory that the address sanitizer keeps from being used again would look like growth.
    os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1"
    slow = threading.Thread(target=check_slow_clients, args=(path,))
    slow.start()
    check_routes(path)
    check_attack(path, 1024)
    check_attack(path, 40)
    check_end(path)
    slow.join()
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
