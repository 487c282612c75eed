#!/usr/bin/env python3
"""Has the server of samples/outside answer concurrent clients: use_server.py SERVE PLUGIN WEIGHTS

Fails unless requests that are batched get the answers that they get alone, bad requests get a sentence, SIGTERM ends the
server once it has answered what it has read, within two seconds whatever clients do, and clients that are too slow are sent away.
"""

import math
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

CLIENTS = 8
LINES = 4000 if os.environ.get("REEL_ENDURANCE") else 60  # of each client
LIMIT_SECONDS = 120
MOST_SECONDS_TO_STOP = 2

# The server's answers to a line that is no request, or one that the model refuses.
BAD_LINES = {
    "1 2 3": r"error: reel_model_run: Linear: x \(\d+, 3\) does not end in an axis of size 2.*; at .*classifier\.cpp:\d+",
    "0.5 abc": r"error: 'abc' is no number",
    "": r"error: a request is one line of numbers; this one is empty",
    "1,2": r"error: '1,2' is no number",
    "1 2\0 3": r"error: there is a NUL in the line",
    "0x": r"error: '0x' is no number",
}


class Server:
    def __init__(self, command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().removeprefix("listening at ").strip()

    def connect(self):
        if self.address.startswith("/"):
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(self.address)
        else:
            host, port = self.address.split(":")
            connection = socket.create_connection((host, int(port)))
        connection.settimeout(LIMIT_SECONDS)
        return connection

    def stop(self):
        """Ends the server; returns how many requests and batches it says that it has had."""
        self.process.send_signal(signal.SIGTERM)
        printed, _ = self.process.communicate(timeout=LIMIT_SECONDS)
        found = re.fullmatch(r"answered (\d+) requests in (\d+) batches\n", printed)
        if self.process.returncode != 0 or not found:
            sys.exit(f"SIGTERM: the server ended with {self.process.returncode} and printed {printed!r}")
        return int(found[1]), int(found[2])


def ask(connection, lines):
    """Sends lines one after the other, each once the one before is answered; returns the answers."""
    stream, answers = connection.makefile("rw", newline="\n"), []
    for line in lines:
        stream.write(line + "\n")
        stream.flush()
        answers.append(stream.readline().rstrip("\n"))
    return answers


def check(condition, sentence):
    if not condition:
        sys.exit(sentence)


def requests_of(seed):
    """Random rows of two numbers, every tenth a bad line."""
    chance = random.Random(seed)
    return [chance.choice(list(BAD_LINES)) if chance.random() < 0.1 else f"{chance.uniform(-2, 2):.6f} {chance.gauss(0, 1):.9g}"
            for _ in range(LINES)]


def answer_all(server, requests):
    """The answers of clients that ask at the same time, or the first error of one of them."""
    answers = [None] * len(requests)

    def run(i):
        with server.connect() as connection:
            answers[i] = ask(connection, requests[i])

    threads = [threading.Thread(target=run, args=[i]) for i in range(len(requests))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(None not in answers, "a client has got no answer")
    return answers


def check_bad_lines(requests, answers):
    for lines, found in zip(requests, answers):
        for line, answer in zip(lines, found):
            if line in BAD_LINES:
                check(re.fullmatch(BAD_LINES[line], answer), f"{line!r} was answered by {answer!r}")
            else:
                check(re.fullmatch(r"\S+ \S+", answer), f"{line!r} was answered by {answer!r}")


def agree(batched, alone):
    """True for equal numbers to rounding, which differs with the number of rows of a product, and for equal sentences but for
    the number of rows that are refused."""
    if alone.startswith("error: "):
        return re.sub(r"x \(\d+, 3\)", "x (N, 3)", batched) == re.sub(r"x \(\d+, 3\)", "x (N, 3)", alone)
    return all(math.isclose(float(a), float(b), rel_tol=1e-4, abs_tol=1e-7) for a, b in zip(batched.split(), alone.split()))


def check_long_line(server):
    with server.connect() as connection:
        connection.sendall(b"1" * 70000)
        found = b""
        try:
            while part := connection.recv(1000):
                found += part
        except ConnectionResetError:
            pass  # the rest of the line was not read
        check(found in (b"error: the line is longer than 65,535 bytes\n", b""), f"a long line was answered by {found!r}")


def check_stop_answers(server):
    """What the server has read when it is stopped is answered; a client that says nothing is not waited for."""
    with server.connect() as silent, server.connect() as waiting:
        ask(silent, ["0 0"])
        waiting.sendall(b"0.5 0.5\n" * 20)
        stream = waiting.makefile("r", newline="\n")
        first = stream.readline()
        counts = server.stop()
        answers = [first, *stream]
        check(all(answer == first for answer in answers), f"equal requests got {answers}")
        check(stream.readline() == "", "the connection is open after the server's end")
    return counts


def send_for_ever(connection, text, answers):
    """Sends as long as the server takes it, and reads no answer."""
    connection.setblocking(False)
    while not answers.is_set():
        try:
            connection.sendall(text)
        except BlockingIOError:
            time.sleep(0.01)
        except OSError:
            return


def check_stop_in_time(command):
    """The server ends whatever its clients do: they send without an end and read nothing, or only a part of a line, or wait for
    others that could be batched with them."""
    for greedy in (b"0.5 0.5\n", b"0.5 0.5\n" * 8000, b"x" * 60000 + b"\n"):
        server, ended = Server([*command, "--port", "0", "--max-batch", "100", "--max-wait", "10000" if len(greedy) < 10 else "0"]), threading.Event()
        clients = [server.connect() for _ in range(6)]
        clients[0].sendall(b"0.5 0")
        senders = [threading.Thread(target=send_for_ever, args=[client, greedy, ended]) for client in clients[1:]]
        for sender in senders:
            sender.start()
        time.sleep(0.5)
        begin = time.monotonic()
        for _ in range(20):
            server.process.send_signal(signal.SIGTERM)
        server.stop()
        seconds = time.monotonic() - begin
        ended.set()
        for sender in senders:
            sender.join()
        check(seconds < MOST_SECONDS_TO_STOP, f"the server took {seconds:.1f} s to end with clients that send {greedy[:20]!r}")


def check_slow_clients(command):
    """Clients that send no whole line in time are sent away, and those that are too many are told so."""
    server = Server([*command, "--port", "0", "--idle", "1"])
    with server.connect() as silent, server.connect() as slow:
        begin = time.monotonic()
        try:
            while time.monotonic() < begin + 10:
                slow.sendall(b"1")
                time.sleep(0.1)
        except OSError:
            pass
        seconds = time.monotonic() - begin
        check(0.9 < seconds < 5, f"a client that sends a byte now and then was kept for {seconds:.1f} s")
        answer = silent.makefile().read()
        check(answer == "error: no whole line has come in time\n", f"a silent client got {answer!r}")
    clients = [server.connect() for _ in range(257)]
    answer = clients[-1].makefile().readline()
    check(answer == "error: there are too many connections: try again later\n", f"the last of {len(clients)} clients got {answer!r}")
    for client in clients:
        client.close()
    server.stop()


def main(serve, plugin, weights):
    seed = int(os.environ.get("REEL_SEED") or random.randrange(1 << 32))
    print(f"REEL_SEED={seed}")
    requests = [requests_of(seed + i) for i in range(CLIENTS)]
    command = [serve, plugin, weights]

    alone = Server([*command, "--port", "0", "--max-batch", "1", "--max-wait", "0"])
    expected = answer_all(alone, requests)
    check_bad_lines(requests, expected)
    check_long_line(alone)
    asked, batches = check_stop_answers(alone)
    check(asked == batches, f"{batches} batches of one for {asked} requests")

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "socket")
        batched = Server([*command, "--socket", path, "--max-batch", "5", "--max-wait", "20"])
        found = answer_all(batched, requests)
        check_bad_lines(requests, found)
        for lines, ours, theirs in zip(requests, found, expected):
            for line, a, b in zip(lines, ours, theirs):
                check(agree(a, b), f"{line!r} was answered by {a!r} in a batch and {b!r} alone")
        asked, batches = check_stop_answers(batched)
        check(batches < 0.7 * asked, f"{batches} batches for {asked} requests of {CLIENTS} clients")
        check(not os.path.exists(path), "the server has left its socket behind")
    print(f"{asked} requests in {batches} batches are answered as alone")

    lines = [*requests[0], "1" * 65536]
    expected[0].append("error: the line is longer than 65,535 bytes")
    printed = subprocess.run(command, input="".join(line + "\n" for line in lines), stdout=subprocess.PIPE, text=True,
                             check=True).stdout.splitlines()
    check(printed == expected[0], "the standard input is answered otherwise than a connection")

    check_stop_in_time(command)
    check_slow_clients(command)


if __name__ == "__main__":
    main(*sys.argv[1:])
