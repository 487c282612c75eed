#!/usr/bin/env python3
"""Debugs a running program through the page that its session serves: by requests, and in headless Chromium.

Usage: use_page.py SERVE_SESSION [--browser [PICTURE]]

SERVE_SESSION is the program that trains a net in a session. With --browser the page itself is opened, and its controls are
used; without Chromium that exits with status 77. PICTURE: a file for a picture of the page.
"""

import http.client
import http.server
import json
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

SKIPPED = 77
SECONDS = 60
SECONDS_IN_BROWSER = 360  # most of them on a machine that does much else

faults = []


def check(sentence, passed, found=""):
    print(("passed " if passed else "FAILED ") + sentence + ("" if passed else f": {found}"))
    if not passed:
        faults.append(sentence)


class Program:
    """The program, and requests to it."""

    def __init__(self, path, *arguments):
        self.process = subprocess.Popen([path, *arguments], stdout=subprocess.PIPE, text=True)
        first = self.process.stdout.readline()
        found = re.search(r"(http://127\.0\.0\.1:(\d+)/([0-9a-f]{32})/)", first)
        if not found:
            raise SystemExit(f"The program printed no address but: {first}")
        self.address, self.port, self.token = found[1], int(found[2]), found[3]

    def request(self, what, body=None, method=None, host=None, path=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        headers = {"Host": host} if host else {}
        connection.request(method or ("GET" if body is None else "POST"), path or f"/{self.token}/{what}", body, headers)
        reply = connection.getresponse()
        text = reply.read().decode()
        return reply.status, text, reply

    def ask(self, what, body=""):
        status, text, _ = self.request(what, body)
        return json.loads(text) if text[:1] in "{[n" else {"status": status, "text": text}

    def data(self, has="0 0 0 0 0", which="next"):
        return self.ask("data", f"{has} {which}")

    def stopped(self):
        """What is known once the program has stopped."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            data = self.data()
            if data.get("state") == "stopped":
                return data
            time.sleep(0.02)
        raise SystemExit("The program did not stop.")

    def command(self, text):
        """Runs a command of the debugger. Returns what it has printed; one that lets the program run on, at its next stop."""
        before = self.data()["nextPrinted"]
        self.ask("command", text)
        return self.stopped()["printed"].encode()[before:].decode()

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def check_addresses(program):
    status, page, reply = program.request("")
    check("the page is served", status == 200 and "<title>reel: a running program</title>" in page, status)
    check("no browser keeps it or tells others its address",
          reply.getheader("Cache-Control") == "no-store" and reply.getheader("Referrer-Policy") == "no-referrer", reply.getheaders())
    check("the page may talk with its own server only", "default-src 'none'" in page and "connect-src 'self'" in page)
    for sentence, path in (("without a token", "/"), ("with a wrong token", "/" + "0" * 32 + "/"),
                           ("with a longer token", f"/{program.token}0/"), ("of another page", f"/{program.token}/secrets")):
        method = "POST" if "another" in sentence else "GET"
        status, text, _ = program.request("", body="" if method == "POST" else None, path=path)
        check(f"an address {sentence} is not found", status == 404 and program.token not in text, (status, text))
    status, _, _ = program.request("", host="attacker.example:80")
    check("a page of another site cannot read it", status == 404, status)
    status, _, _ = program.request("", host=f"localhost:{program.port + 1}")
    check("a forwarded port can", status == 200, status)
    status, _, _ = program.request("command")
    check("a link cannot run commands", status == 405, status)
    status, text, _ = program.request("data", "no numbers")
    check("a request that makes no sense is refused with a sentence", status == 400 and "no number" in text, (status, text))
    status, text, _ = program.request("watch", "scale_change 0.5")
    check("a watch that cannot be is refused", status == 400 and "change of scale" in text, (status, text))
    for kind in ("bound", "gradient_norm"):
        status, text, _ = program.request("watch", f"{kind} -1")
        check(f"a {kind} below 0 is refused", status == 400 and "a bound below 0" in text, (status, text))
    status, _, _ = program.request("source", "999999")
    check("only the files of ops can be read", status == 400, status)
    status, _, _ = program.request("command", "x" * 100_000)
    check("a huge request is refused", status == 413, status)
    with socket.create_connection(("127.0.0.1", program.port)) as silent:
        silent.sendall(b"POST / HTTP/1.1\r\nContent-Length: -5\r\n")
        status, _, _ = program.request("")
        check("a client that sends half a request does not hold up others", status == 200, status)


def check_commands(program):
    first = program.data()
    check("the program waits at its first op", first["state"] == "stopped" and first["reason"] == "the first op", first)
    printed = program.command("step")
    check("step runs one op", re.search(r"stopped: %\d+ ", printed), printed)
    printed = program.command("cont until matmul")
    check("continue until an op stops there", re.search(r"stopped: %\d+ matmul ", printed), printed)
    program.ask("watch", "anomalies")
    printed = program.command("cont")
    check("a watch stops at NaN", "watch: NaN or infinity" in printed and "log at" in printed and "with t = 5" in printed, printed)
    data = program.data()
    texts, last = data["texts"], -1
    check("ops come with their lines and modules", "tests/debug/serve_session.cpp" in texts and "cell.state" in texts, texts)
    check("the op that gave NaN is the last", texts[data["op"][last]] == "log" and data["out"][last][0][7] == 24, data["out"][last])
    check("norms of updates come", len(data["updates"]) == 3 * 6, data["updates"])
    values = program.ask("value", f"{data['id'][last]} 0")
    check("values come on demand", "nan" in (values["text"] or ""), values)
    lines = program.ask("source", str(data["file"][last]))
    check("source lines come on demand", isinstance(lines, list) and "log(h - 2.0f)" in lines[data["line"][last] - 1], str(lines)[:80])
    check("histograms come on demand", len(program.ask("histograms")) > 0)
    printed = program.command("pt")
    check("the debugger's commands print", "nan" in printed, printed)
    check("a wrong command is an error", "error: there is no command 'fly'" in program.command("fly"))
    check("filters of the program are offered", "large" in program.ask("complete", "cont until la"))
    again = program.data(f"{data['nextOp']} {data['nextText']} {data['nextUpdate']} 0 {data['nextPrinted']}")
    check("what the page has does not come again", again["id"] == [] and again["texts"] == [] and again["updates"] == [], again)
    tanh = next(i for i, op in enumerate(data["op"]) if texts[op] == "tanh")
    program.ask("watch", f"node\ttanh\t{texts[data['file'][tanh]]}\t{data['line'][tanh]}\t{texts[data['module'][tanh]]}")
    printed = program.command("cont")
    check("a ticked op stops the program", "watched op" in printed and "tanh at" in printed, printed)


def check_running(path):
    program = Program(path, "1000000")
    program.ask("command", "cont")
    end = time.monotonic() + SECONDS
    while (data := program.data(which="newest")).get("skipped", 0) == 0 and time.monotonic() < end:
        time.sleep(0.05)
    check("ops come while the program runs", data["state"] == "running" and len(data["id"]) == 4000, len(data["id"]))
    threads = [threading.Thread(target=program.data, kwargs={"which": "newest"}) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    printed = program.command("step")
    check("pause stops a running program", "stopped: %" in printed, printed[-300:])
    program.ask("command", "quit")
    end = time.monotonic() + SECONDS
    while program.ask("data", "0 0 0 0 0 newest").get("state") != "ended" and time.monotonic() < end:
        time.sleep(0.05)
    check("after quit the program runs on without the page", program.process.poll() is None)
    program.end()


def check_end(path):
    program = Program(path, "2")
    program.ask("command", "cont")
    check("a session that ends ends its server", "serve_session: done" in program.process.stdout.read() and program.process.wait(20) == 0)
    program.process.stdout.close()
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    taken.listen()
    refused = subprocess.run([path, "1", "", str(taken.getsockname()[1])], capture_output=True, text=True, timeout=60)
    check("a port that is taken is refused with a sentence", refused.returncode == 1 and re.search(r"port \d+ of 127\.0\.0\.1 cannot be opened: .*already in use", refused.stderr),
          refused.stderr)
    taken.close()


# Runs before the page's own scripts.
BEFORE = """<script>
window.faults = [];
addEventListener('error', event => faults.push(event.message));
addEventListener('unhandledrejection', event => faults.push(String(event.reason)));
console.error = (...words) => faults.push(words.join(' '));
</script>"""

# Runs behind them: each check waits until its function returns true.
AFTER = """<script>
(async () => {
  const results = [];
  const tell = last => fetch(last ? 'checks' : 'checks-so-far', {method: 'POST', body: results.concat(faults.map(fault => 'FAULT ' + fault)).join('\\n')});
  const check = async (name, f) => {
    const end = performance.now() + 30000;
    let passed = false;
    while (!passed && performance.now() < end) {
      try { passed = f() === true; } catch (error) { results.push('note ' + error); break; }
      if (!passed) await new Promise(resolve => setTimeout(resolve, 50));
    }
    results.push((passed ? 'passed ' : 'FAILED ') + name);
    await tell(false);
  };
  const state = text => element('live-state').textContent.includes(text);
  const write = (id, text, event = 'input') => { element(id).value = text; element(id).dispatchEvent(new Event(event)); };
  const press = (node, key) => node.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true, cancelable: true}));
  await check('the page says that the program waits at its first op', () => state('Stopped, the first op') && run.count >= 1);
  const first = live.at;
  element('live-step').click();
  await check('step runs one op', () => live.state === 'stopped' && live.at > first);
  write('live-until', 'step 2');
  element('live-until-go').click();
  await check('continue until a step stops there', () => live.state === 'stopped' && run.step[run.count - 1] === 2);
  write('live-search', 'tanh');
  await check('the ops to watch are filtered by a regular expression', () => element('live-nodes').children.length === 1 && /tanh at .*serve_session/.test(element('live-nodes').textContent));
  element('live-nodes').querySelectorAll('input')[0].click();
  await check('a watched op shows its values and norms', () => /\\[/.test(element('live-watched').querySelector('pre').textContent) && element('live-watched').querySelector('path') !== null);
  const times = Number(element('live-nodes').querySelector('.number').textContent);
  element('live-nodes').querySelectorAll('input')[1].click();
  element('live-continue').click();
  await check('a ticked op stops the program, and its count and values follow', () => live.state === 'stopped' && live.reason === 'watched op' && Number(element('live-nodes').querySelector('.number').textContent) > times);
  element('live-nodes').querySelectorAll('input')[1].click();
  element('stop-anomalies').click();
  element('live-continue').click();
  await check('a ticked watch stops at NaN', () => state('NaN or infinity') && state('log at') && state('t = 5'));
  element('live-state').querySelector('button').click();
  await check('its link opens the op with source and values, which come from the program', () => !element('ops').hidden && /nan/.test(element('op-detail').textContent) && element('op-detail').querySelector('.source .at') !== null);
  element('step-back').click();
  await check('the ops so far are stepped through backward', () => current < run.index.get(live.at));
  element('tab-graph').click();
  element('graph-step').value = '3';
  element('graph-step').dispatchEvent(new Event('change'));
  element('graph-unfold').click();
  await check('nodes of the graph have boxes to watch them', () => element('graph').querySelectorAll('text.watch').length > 2);
  element('graph').querySelector('text.watch').dispatchEvent(new MouseEvent('click', {bubbles: true}));
  for (const panel of ['gradients', 'activations', 'profile', 'memory', 'overview']) {
    element('tab-' + panel).click();
    await check('the part ' + panel + ' shows the running program', () => element(panel).textContent.length > 60);
  }
  element('tab-live').click();
  await check('a box ticked in the graph watches', () => element('live-watched').querySelectorAll('figure').length === 2);
  element('live-command').value = 'lt -s ti';
  press(element('live-command'), 'Tab');
  await check('commands are completed', () => element('live-command').value === 'lt -s time ');
  element('live-command').value += '-c 3';
  press(element('live-command'), 'Enter');
  await check('the debugger prints what commands ask for', () => /lt -s time -c 3\\n/.test(element('live-console').textContent) && /output/.test(element('live-console').textContent));
  press(element('live-command'), 'ArrowUp');
  await check('the last command comes back', () => element('live-command').value === 'lt -s time -c 3');
  element('stop-anomalies').click();
  element('live-continue').click();
  await check('ops come while the program runs', () => live.state === 'running' && state('The program runs') && run.count > 5000);
  element('live-pause').click();
  await check('pause stops it', () => live.state === 'stopped' && !live.gaps && live.has.ops > 0);
  await check('all ops that the session has kept have come', () => run.id.length > 10000 && run.id.every((id, i) => i === 0 || id !== run.id[i - 1]));
  await tell(true);
})();
</script>"""


# Runs behind them for a picture.
FOR_PICTURE = """<script>
setTimeout(() => element('live-nodes').querySelector('input[aria-label*="tanh"]').click(), 1500);
</script>"""


class Proxy(http.server.ThreadingHTTPServer):
    """Passes requests on to the program, with the checks added to the page."""

    def __init__(self, program, script):
        super().__init__(("127.0.0.1", 0), Handler)
        self.program, self.script, self.checks, self.done = program, script, "", threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()
        self.address = f"http://127.0.0.1:{self.server_port}/{program.token}/"


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def reply(self, status, text, content_type):
        data = text.encode()
        try:
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except ConnectionError:  # the browser has been closed
            pass

    def do_GET(self):
        if self.path != f"/{self.server.program.token}/":
            return self.reply(204, "", "text/plain")
        _, page, _ = self.server.program.request("")
        page = page.replace("<head>", "<head>" + BEFORE, 1).replace("</body>", self.server.script + "</body>", 1)
        self.reply(200, page, "text/html; charset=utf-8")

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        what = urlsplit(self.path).path.split("/")[-1]
        if what in ("checks", "checks-so-far"):
            self.server.checks = body
            if what == "checks":
                self.server.done.set()
            return self.reply(200, "{}", "application/json")
        status, text, reply = self.server.program.request(what, body)
        self.reply(status, text, reply.getheader("Content-Type"))


def check_in_browser(path, picture):
    browser = next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)
    if not browser:
        print("Chromium is not installed; `tools/test --browser` installs it.")
        return SKIPPED
    resource.setrlimit(resource.RLIMIT_AS, (resource.getrlimit(resource.RLIMIT_AS)[1],) * 2)  # a browser reserves much
    with tempfile.TemporaryDirectory(prefix="reel_page_", ignore_cleanup_errors=True) as folder:
        command = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-color-profile=srgb",
                   f"--user-data-dir={folder}/profile", "--window-size=1200,1000"]
        program = Program(path, "1000000")
        with Proxy(program, AFTER) as proxy:
            window = subprocess.Popen([*command, "--remote-debugging-port=0", proxy.address], stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL)
            came = proxy.done.wait(SECONDS_IN_BROWSER)
            window.kill()
            window.wait()
            proxy.shutdown()
        program.end()
        print(proxy.checks)
        check("the page's checks ran to their end without an error in the console",
              came and not re.search(r"^(FAILED|FAULT)", proxy.checks, re.M))
        check_listed(proxy.checks)
        if picture:
            program = Program(path, "5")
            program.ask("watch", "anomalies")
            program.command("cont")
            with Proxy(program, FOR_PICTURE) as proxy:
                subprocess.run([*command, "--virtual-time-budget=4000", f"--screenshot={picture}", proxy.address],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
                proxy.shutdown()
            program.end()
    return 0


def check_listed(checks):
    """What samples/README.md says of the page must be among its checks."""
    listed = (Path(__file__).resolve().parents[2] / "samples/README.md").read_text().split("<!-- live -->")[1]
    for line in re.findall(r"^- (.*)$", listed, re.M):
        if "passed " + line not in checks.split("\n"):
            check(f"samples/README.md says: {line}", False)


def main():
    path = Path(sys.argv[1]).absolute()
    if "--browser" in sys.argv:
        skipped = check_in_browser(path, sys.argv[3] if len(sys.argv) > 3 else None)
        return skipped or bool(faults)
    program = Program(path, "5")
    check_addresses(program)
    check_commands(program)
    program.end()
    check_running(path)
    check_end(path)
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
