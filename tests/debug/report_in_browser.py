#!/usr/bin/env python3
"""Opens a report in headless Chromium, uses its controls, and fails if one does not work, an error is in the console, or
the page takes too long to open.

Usage: report_in_browser.py REEL WRITE_RECORDING OPS [PICTURES]

REEL is the tool, WRITE_RECORDING the program that records a run of at least OPS ops. With the folder PICTURES the parts of
the page are saved as PNG files. Without Chromium it exits with status 77.
"""

import re
import resource
import shutil
import subprocess
import sys
import tempfile
from html import unescape
from pathlib import Path

SECONDS_TO_OPEN = 2
SKIPPED = 77

# Runs before the page's own scripts.
BEFORE = """<script>
window.faults = [];
window.began = performance.now();
addEventListener('error', event => faults.push(event.message));
console.error = (...words) => faults.push(words.join(' '));
</script>"""

# Runs behind them: each check is a name and a function that returns true.
AFTER = """<script>
(() => {
  const opened = performance.now() - began, results = [];
  const check = (name, f) => {
    let passed = false;
    try { passed = f() === true; } catch (error) { faults.push(name + ': ' + error); }
    results.push((passed ? 'passed ' : 'FAILED ') + name);
  };
  const press = (node, key) => node.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
  const write = (id, text) => { const box = element(id); box.value = text; box.dispatchEvent(new Event('input')); };
  check('the overview names the first NaN with its line', () => /log at .*write_recording\\.cpp:\\d+/.test(element('first-anomaly').textContent));
  check('the link to the first NaN opens the list of ops there', () => {
    element('first-anomaly').querySelector('button').click();
    return !element('ops').hidden && /log at/.test(element('op-detail').textContent) && /NaN/.test(element('op-detail').textContent);
  });
  check('the details name the time step of the NaN', () => /t = 300/.test(element('op-detail').textContent));
  check('the source line is shown with its text', () => element('op-detail').querySelector('.source .at') !== null);
  check('few rows of the list are elements', () => element('op-rows').children.length > 10 && element('op-rows').children.length < 200);
  check('a click steps back', () => { const before = current; element('step-back').click(); return current < before; });
  check('keys step forward and back', () => { const before = current; press(element('op-list'), 'ArrowDown'); const next = current; press(element('op-list'), 'k'); return next > before && current === before; });
  check('the filter selects ops by a regular expression', () => { write('op-search', '^tanh .*cell'); return chosen.length > 0 && chosen.length < run.count && chosen.every(i => run.opName(i) === 'tanh'); });
  check('a broken expression is refused without an error', () => { write('op-search', '('); const refused = !element('op-search').checkValidity(); write('op-search', ''); return refused; });
  for (const panel of ['graph', 'gradients', 'activations', 'profile', 'memory'])
    check('the part ' + panel + ' opens', () => { element('tab-' + panel).click(); return !element(panel).hidden && element(panel).textContent.length > 40; });
  check('the graph is folded by module', () => { element('tab-graph').click(); return document.querySelectorAll('#graph g.node.module').length >= 1; });
  check('a click unfolds a module', () => { const before = document.querySelectorAll('#graph g.node').length; document.querySelector('#graph g.node.module').dispatchEvent(new MouseEvent('click', {bubbles: true})); return document.querySelectorAll('#graph g.node').length > before; });
  check('the search marks nodes of the graph', () => { element('graph-unfold').click(); write('graph-search', 'tanh'); return document.querySelectorAll('#graph g.node.found').length >= 1; });
  check('a node of the graph shows its source beside it', () => { document.querySelector('#graph g.node.found').dispatchEvent(new MouseEvent('click', {bubbles: true})); return !element('graph').hidden && /tanh at/.test(element('graph-detail').textContent) && element('graph-detail').querySelector('.source .at') !== null; });
  check('loops are folded into nodes with a count', () => /×\\d/.test(element('graph').textContent));
  check('the heat map of gradients is painted', () => { element('tab-gradients').click(); const canvas = document.querySelector('canvas.heat'); const pixel = canvas.getContext('2d').getImageData(canvas.width - 2, 2, 1, 1).data; return canvas.width > 100 && pixel[3] === 255; });
  check('a heat map has a row for each parameter', () => { const canvas = document.querySelector('canvas.parameters'), names = canvas.parentNode.querySelectorAll('.heat-names div'); return names.length === 6 && canvas.height === 14 * names.length && canvas.getContext('2d').getImageData(2, 2, 1, 1).data[3] === 255; });
  check('a heat map paints NaN and infinity red, and 0 black', () => {
    const canvas = make('canvas'), norms = [5, 0, normOf([0, 0, 8, null, null, null, null, 2, 0, 0, 2]), undefined, normOf([0, 0, 0, null, null, null, null, 0, 0, 0, 0])];
    canvas.height = 4;
    paintNorms(canvas, [norms], norms.length);
    const at = k => canvas.getContext('2d').getImageData((k + 0.5) * canvas.width / norms.length, 2, 1, 1).data;
    return norms[2] === null && norms[4] === 0 && at(2)[0] > 200 && at(2)[1] < 60 && at(1)[0] < 60 && at(0)[1] > 200 && at(3)[3] < 255;
  });
  check('dead units are counted by line and step', () => { element('tab-activations').click(); const row = [...document.querySelectorAll('#activations tbody tr')].find(row => /^relu at/.test(row.textContent)); return /2 of 16/.test(row.textContent) && /Dead units by step/.test(element('activations').textContent) && document.querySelectorAll('#activations .curves path').length === 1; });
  element('tab-gradients').click();
  const zooms = (svg, curve) => {
    const whole = curve();
    press(svg, '+');
    const part = curve();
    press(svg, 'ArrowRight');
    const moved = curve();
    press(svg, '0');
    return whole !== part && part !== moved && curve() === whole;
  };
  check('a chart is zoomed into with keys', () => { const svg = document.querySelector('#gradients figure > svg'); return zooms(svg, () => svg.querySelector('.curves path').getAttribute('d')); });
  check('dragging zooms into a chart, and a double click shows all', () => {
    const svg = document.querySelector('#gradients figure > svg'), box = svg.getBoundingClientRect(), curve = () => svg.querySelector('.curves path').getAttribute('d');
    const whole = curve(), pointer = (kind, share) => svg.dispatchEvent(new PointerEvent(kind, {clientX: box.left + share * box.width, clientY: box.top + 50, bubbles: true}));
    pointer('pointerdown', 0.4); pointer('pointermove', 0.6);
    const selected = svg.querySelector('.selection') !== null;
    pointer('pointerup', 0.6);
    const part = curve();
    svg.dispatchEvent(new MouseEvent('dblclick', {bubbles: true}));
    return selected && part !== whole && curve() === whole;
  });
  check('the curves of logs are zoomed into with keys', () => { const svg = [...document.querySelectorAll('figure > svg')].find(svg => /loss/.test(svg.parentNode.textContent)); return zooms(svg, () => svg.querySelector('.curves').innerHTML); });
  check('the profile is sorted by op, line and module', () => { element('tab-profile').click(); const by = element('profile-by'); return ['op', 'line', 'module'].every(key => { by.value = key; by.dispatchEvent(new Event('change')); return element('profile-table').querySelectorAll('tbody tr').length >= 1; }); });
  check('parts are chosen with the keyboard', () => { element('tab-profile').focus(); press(element('tabs'), 'ArrowRight'); return element('tab-memory').getAttribute('aria-selected') === 'true'; });
  const part = location.hash.slice(1);
  if (part) element('tab-' + part).click();
  const report = document.createElement('pre');
  report.id = 'checks';
  report.textContent = results.concat(faults.map(fault => 'FAULT ' + fault), 'opened ' + opened.toFixed(0) + ' ms', 'ops ' + run.count).join('\\n');
  report.hidden = true;
  document.body.append(report);
})();
</script>"""


# Behind those of two recordings.
AFTER_BOTH = """<script>
(() => {
  const results = [];
  const check = (name, f) => {
    let passed = false;
    try { passed = f() === true; } catch (error) { faults.push(name + ': ' + error); }
    results.push((passed ? 'passed ' : 'FAILED ') + name);
  };
  check('the heat maps show that gradients vanish in one net and not in the other', () => {
    element('tab-gradients').click();
    const share = r => { const loop = gradientLoops(r).sort((a, b) => b.most - a.most)[0], norms = [...loop.steps.values()][0].map(one => one.norm).filter(norm => norm !== null); return norms[0] / norms.at(-1); };
    const light = canvas => [...canvas.getContext('2d').getImageData(canvas.width / 10, 2, 1, 1).data].slice(0, 3).reduce((sum, one) => sum + one);
    const [plain, memory] = document.querySelectorAll('canvas.heat:not(.parameters)');
    return share(all[0]) < 1e-6 && share(all[1]) > 1e-3 && light(plain) < light(memory);
  });
  const rows = () => element('compare-lines').querySelectorAll('tbody tr');
  const write = (id, text, event) => { element(id).value = text; element(id).dispatchEvent(new Event(event)); };
  check('two runs are compared line by line', () => { element('tab-compare').click(); return rows().length > 10 && element('compare-chart').querySelectorAll('path').length > 5; });
  check('lines that only one run has come first', () => /none/.test(rows()[0].textContent));
  check('lines are filtered by a regular expression', () => { write('compare-search', '^tanh at', 'input'); return rows().length > 0 && [...rows()].every(row => row.textContent.startsWith('tanh at')); });
  check('a broken expression of lines is refused without an error', () => { write('compare-search', '(', 'input'); const refused = !element('compare-search').checkValidity(); write('compare-search', 'addmm', 'input'); return refused; });
  check('a chosen line is drawn for both runs', () => { rows()[0].querySelector('button').click(); return /addmm/.test(element('compare-chart').textContent) && element('compare-chart').querySelectorAll('.curves path').length === 2; });
  check('a parameter of both runs is drawn', () => { write('compare-parameter', 'output.weight', 'change'); return element('compare-parameters').querySelectorAll('.curves path').length === 6 && [...element('compare-parameters').querySelectorAll('.curves path')].every(path => path.getAttribute('d').length > 10); });
  check('a run beside itself has no differences', () => { write('compare-search', '', 'input'); write('compare-right', '0', 'change'); return [...rows()].every(row => ['1', ''].includes(row.children[5].textContent)); });
  const report = document.createElement('pre');
  report.id = 'checks';
  report.textContent = results.concat(faults.map(fault => 'FAULT ' + fault)).join('\\n');
  report.hidden = true;
  document.body.append(report);
})();
</script>"""


def browser():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    return None


def run_browser(program, folder, *arguments):
    command = [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-color-profile=srgb",
               f"--user-data-dir={folder / 'profile'}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def check_page(program, folder, page, checks):
    """The results of checks that run in the page, a line each."""
    tested = folder / "tested.html"
    tested.write_text(page.read_text().replace("<head>", "<head>" + BEFORE, 1).replace("</body>", checks + "</body>", 1))
    dom = run_browser(program, folder, "--dump-dom", tested.as_uri()).stdout
    found = re.search(r'<pre id="checks"[^>]*>(.*?)</pre>', dom, re.S)
    return unescape(found.group(1)).split("\n") if found else [f"FAULT the checks of {page.name} did not run"]


def main():
    tool, write_recording = (Path(argument).absolute() for argument in sys.argv[1:3])
    ops = sys.argv[3]
    pictures = Path(sys.argv[4]).absolute() if len(sys.argv) > 4 else None
    program = browser()
    if not program:
        print("Chromium is not installed; `tools/test --browser` installs it.")
        return SKIPPED
    resource.setrlimit(resource.RLIMIT_AS, (resource.getrlimit(resource.RLIMIT_AS)[1],) * 2)  # a browser reserves much
    with tempfile.TemporaryDirectory(prefix="reel_report_", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        subprocess.run([write_recording, folder / "run.reel", ops], check=True)
        page = folder / "report.html"
        source = Path(__file__).resolve().parents[2]
        logs = folder / "logs"
        logs.mkdir()
        (logs / "scalars.csv").write_text("step,wall_time,run,tag,value\n"
                                          + "".join(f"{step},{step}.5,,loss,{1 / (step + 1)}\n" for step in range(50)))
        subprocess.run([tool, "report", "run.reel", logs, "-o", page, "--source", source], check=True, cwd=folder, stdout=subprocess.DEVNULL)
        lines = check_page(program, folder, page, AFTER)
        # The nets' runs side by side, for the norms of their gradients.
        subprocess.run([write_recording, folder / "lstm.reel", "20000", "lstm"], check=True)
        subprocess.run([write_recording, folder / "rnn.reel", "10000", "rnn"], check=True)
        both = folder / "both.html"
        subprocess.run([tool, "report", "rnn.reel", "lstm.reel", "-o", both], check=True, cwd=folder, stdout=subprocess.DEVNULL)
        lines += check_page(program, folder, both, AFTER_BOTH)
        print("\n".join(lines))
        faults = [line for line in lines if line.startswith(("FAILED", "FAULT"))]
        listed = (source / "samples/README.md").read_text().split("<!-- page -->")[1]
        for line in re.findall(r"^- (.*)$", listed, re.M):
            if "passed " + line not in lines:
                faults.append(f"FAILED samples/README.md says: {line}")
                print(faults[-1])
        opened = next((int(line.split()[1]) for line in lines if line.startswith("opened")), 0)
        if opened > 1000 * SECONDS_TO_OPEN:
            faults.append(f"FAILED the page took {opened} ms to open")
            print(faults[-1])
        if pictures:
            pictures.mkdir(parents=True, exist_ok=True)
            for part in ("overview", "ops", "graph", "gradients", "profile", "memory", "compare"):
                shown = folder / f"{part}.html"
                html = (both if part in ("gradients", "compare") else page).read_text()
                shown.write_text(html.replace("startPanels();</script>", f"startPanels(); openPanel('{part}'); "
                                 + ("unfolded.add('cell'); showGraph();" if part == "graph" else "") + "</script>", 1))
                run_browser(program, folder, "--window-size=1200,760", f"--screenshot={pictures / (part + '.png')}", shown.as_uri())
        return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
