const root = location.pathname.replace(/\/?$/, '/');
async function ask(what, body = '') {
  const reply = await fetch(root + what, {method: 'POST', body});
  if (reply.status === 410) return {state: 'ended'};
  if (reply.status === 503 || reply.status === 202) return {state: 'busy'};
  if (!reply.ok) throw new Error(await reply.text());
  return reply.json();
}
const nodeKey = i => [run.text('op', i), run.text('file', i), run.line[i], run.text('module', i)].join('\t');
class Live {
  constructor() {
    this.nodes = new Map();  // by op, file, line and module
    this.state = '';
    this.reason = '';
    this.at = 0;
    this.history = [];
    this.last = Promise.resolve();
    this.forget();
  }
  // To be told of everything again.
  forget() {
    this.has = {ops: 0, texts: 0, updates: 0, names: 0, printed: this.has?.printed ?? 0};
    this.gaps = false;
    const empty = {name: run.name, program: '', live: true, dropped: 0, logs: run.logs, texts: [], updates: [], sources: {}, histograms: []};
    for (const column of columns) empty[column] = [];
    run = all[0] = new Run(empty);
    for (const node of this.nodes.values()) Object.assign(node, {count: 0, norms: [], last: undefined});
  }
  async poll() {
    clearTimeout(this.timer);
    if (this.polling) return;
    this.polling = true;
    let pause = 250;
    const newest = this.state !== 'stopped';
    try {
      const reply = await ask('data', Object.values(this.has).concat(newest ? 'newest' : 'next').join(' '));
      if (!reply.texts) this.state = reply.state;
      else if (this.take(reply, newest)) pause = 0;
    } catch (error) {
      this.state = 'lost';
      this.reason = error.message;
      pause = 2000;
    }
    this.polling = false;
    this.showState();
    if (this.state !== 'ended') this.timer = setTimeout(() => this.poll(), pause);
  }
  // True if there is more to ask for at once.
  take(reply, newest) {
    const before = run.count, stopped = reply.state === 'stopped' && (this.state !== 'stopped' || this.at !== reply.at);
    this.due ||= stopped;
    if (newest && reply.skipped) this.gaps = true;
    Object.assign(this, {state: reply.state, reason: reply.reason, at: reply.at});
    run.append(reply);
    if (!newest && before === 0) run.dropped = reply.skipped;
    this.has = {ops: reply.nextOp, texts: reply.nextText, updates: reply.nextUpdate, names: reply.nextName, printed: reply.nextPrinted};
    this.countNodes(before);
    this.showPrinted(reply.printed);
    // A fast program has sent the newest ops only; once it is stopped there is time for all.
    if (this.gaps && this.state === 'stopped' || run.count > 400000) {
      this.forget();
      return true;
    }
    if (this.state === 'stopped' && reply.left) return true;
    if (run.count > before) listNewOps(before);
    if (this.due && this.state === 'stopped') this.showStop();
    if (run.count > before || stopped) this.showNodes();
    return false;
  }
  showStop() {
    this.due = false;
    refreshPanels(['live', 'ops']);
    const i = run.index.get(this.at);
    if (i === undefined || !panels.find(panel => panel.id === 'ops').shown) return;
    filterOps();
    selectOp(i);
  }
  countNodes(before) {
    for (let i = before; i < run.count; ++i) {
      if (run.kind[i] !== 1) continue;
      const key = nodeKey(i);
      let node = this.nodes.get(key);
      if (!node) this.nodes.set(key, node = {key, count: 0, norms: [], watched: false, stops: false});
      node.last = i;
      ++node.count;
      const o = run.out[i][0];
      if (o && o.length > 3) node.norms.push([node.count, normOf(o)]);
      if (node.norms.length > 600) node.norms.splice(0, 300);
    }
  }
  showState() {
    const box = element('live-state');
    if (!box) return;
    const where = run.index.get(this.at), last = run.count - 1;
    box.className = 'state ' + this.state;
    clear(box);
    if (this.state === 'stopped') box.append(this.reason === 'stopped' ? 'Stopped: ' : `Stopped, ${this.reason}: `, where === undefined ? '%' + this.at : linkTo(where, run.sentence(where)));
    else if (this.state === 'running') box.append(`The program runs: step ${last < 0 ? 0 : run.step[last]}, %${last < 0 ? 0 : run.id[last]}.`);
    else if (this.state === 'busy') box.append('The program has run no op for some seconds.');
    else if (this.state === 'ended') box.append('The session has ended; the page keeps what it has.');
    else if (this.state === 'lost') box.append(`The program cannot be reached; it may have ended (${this.reason}).`);
    for (const id of ['live-step', 'live-continue', 'live-until-go', 'live-quit']) element(id).disabled = this.state !== 'stopped';
    element('live-pause').disabled = this.state !== 'running';
  }
  showPrinted(text) {
    const box = element('live-console');
    if (!text || !box) return;
    box.textContent = (box.textContent + text).slice(-200000);
    box.scrollTop = box.scrollHeight;
  }
  // Each after the answer to the one before: a watch that is ticked before `continue` is pressed must come first.
  askInOrder(what, body) {
    const reply = this.last.then(() => ask(what, body));
    this.last = reply.catch(() => {});
    return reply;
  }
  async send(command) {
    const reply = await this.askInOrder('command', command).catch(error => ({state: 'lost', reason: error.message}));
    Object.assign(this, reply);
    this.poll();
  }
  sendWatches() {
    const lines = [];
    for (const kind of ['anomalies', 'all_zero']) if (element('stop-' + kind).checked) lines.push(kind);
    for (const kind of ['bound', 'gradient_norm', 'scale_change']) {
      const box = element('stop-' + kind);
      if (box.value && box.checkValidity()) lines.push(kind + ' ' + Number(box.value));
    }
    for (const node of this.nodes.values()) if (node.stops) lines.push('node\t' + node.key);
    return this.askInOrder('watch', lines.join('\n')).catch(error => { this.reason = error.message; });
  }
  toggle(node, what, on) {
    node[what] = on;
    if (what === 'stops') this.sendWatches();
    this.showNodes();
  }
  // The nodes' rows stay the same elements, so that a box keeps the focus.
  showNodes() {
    const host = element('live-nodes');
    if (!host) return;
    let expression;
    try { expression = new RegExp(element('live-search').value, 'i'); } catch { return; }
    const shown = [...this.nodes.values()].filter(node => node.watched || node.stops || expression.test(this.title(node))).slice(0, 200);
    const list = shown.map(node => node.key).join('\n');
    if (host.dataset.list !== list) {
      host.dataset.list = list;
      clear(host).append(...shown.map(node => this.row(node)));
    }
    for (const node of shown) {
      node.boxes.watched.checked = node.watched;
      node.boxes.stops.checked = node.stops;
      node.cells.count.textContent = node.count;
      node.cells.text.textContent = node.last < run.count && run.out[node.last][0] ? `${run.form(run.out[node.last][0])}: ${statisticsText(run.out[node.last][0])}` : '';
    }
    this.showWatched();
  }
  title(node) {
    const [op, file, line, module] = node.key.split('\t');
    return `${op} at ${line > 0 ? file + ':' + line : 'unknown place'}` + (module ? ' in ' + module : '');
  }
  row(node) {
    const box = (what, label) => make('input', {type: 'checkbox', 'aria-label': `${label} ${this.title(node)}`, onchange: event => this.toggle(node, what, event.target.checked)});
    node.boxes = {watched: box('watched', 'watch'), stops: box('stops', 'stop at')};
    node.cells = {count: make('td', {class: 'number'}), text: make('td')};
    return make('tr', {}, make('td', {}, node.boxes.watched), make('td', {}, node.boxes.stops), make('td', {}, make('button', {class: 'link', onclick: () => { if (node.last !== undefined) goTo(node.last); }}, this.title(node))), node.cells.count, node.cells.text);
  }
  showWatched() {
    const host = element('live-watched');
    const watched = [...this.nodes.values()].filter(node => node.watched && node.count);
    clear(host);
    for (const node of watched) {
      const o = run.out[node.last][0], values = make('pre', {class: 'values'}, node.shownValues ?? '');
      host.append(card(`${this.title(node)}, ${node.count} times, its norm`, make('div', {}, o ? `${run.form(o)}: ${statisticsText(o)}` : ''), lineChart([['norm', node.norms]], {label: 'Norms of ' + this.title(node)}), values));
      if (o && node.shownOf !== run.id[node.last]) this.loadValues(node, run.id[node.last], values);
    }
  }
  async loadValues(node, id, box) {
    node.shownOf = id;
    const reply = await ask('value', id + ' 0').catch(() => ({}));
    if (reply.text) box.textContent = node.shownValues = reply.text;
  }
  // The elements of an output, once they are there.
  valuesOf(i, k) {
    const box = make('pre');
    ask('value', run.id[i] + ' ' + k).then(reply => { if (reply.text) box.textContent = reply.text; }).catch(() => {});
    return box;
  }
  async loadSource(file) {
    const lines = await ask('source', String(file)).catch(() => null);
    run.sources[file] = Array.isArray(lines) ? lines : null;
  }
  async loadHistograms() {
    const list = await ask('histograms').catch(() => []);
    return Array.isArray(list) ? list : [];
  }
  // A box on a node of the graph.
  addWatchBox(group, node, width) {
    const own = this.nodes.get(nodeKey(node.first));
    if (!own) return;
    const box = draw('text', {x: width - 22, y: 19, class: 'watch', role: 'checkbox', tabindex: 0, 'aria-label': 'watch ' + this.title(own), 'aria-checked': own.watched}, own.watched ? '☑' : '☐');
    const toggle = event => {
      event.stopPropagation();
      this.toggle(own, 'watched', !own.watched);
      box.textContent = own.watched ? '☑' : '☐';
      box.setAttribute('aria-checked', own.watched);
    };
    box.addEventListener('click', toggle);
    box.addEventListener('keydown', event => { if (event.key === ' ' || event.key === 'Enter') toggle(event); });
    group.append(box);
  }
  async complete(box) {
    const found = await ask('complete', box.value).catch(() => []);
    if (!Array.isArray(found) || !found.length) return;
    let common = found[0];
    for (const text of found) while (!text.startsWith(common)) common = common.slice(0, -1);
    box.value = box.value.replace(/[^ ]*$/, '') + common + (found.length === 1 ? ' ' : '');
    if (found.length > 1) this.showPrinted(found.slice(0, 200).join('  ') + '\n');
  }
  commandBox() {
    let at = 0;
    const box = make('input', {id: 'live-command', class: 'command', placeholder: 'a command of the debugger; help lists them', 'aria-label': 'Command of the debugger', autocomplete: 'off', spellcheck: 'false'});
    box.addEventListener('keydown', event => {
      if (event.key === 'Enter' && box.value.trim()) {
        this.history.push(box.value);
        at = this.history.length;
        this.send(box.value);
        box.value = '';
      } else if (event.key === 'Tab' && box.value && !event.shiftKey) this.complete(box);
      else if (event.key === 'ArrowUp' && at > 0) box.value = this.history[--at];
      else if (event.key === 'ArrowDown' && at < this.history.length) box.value = this.history[++at] ?? '';
      else return;
      event.preventDefault();
    });
    return box;
  }
  show(panel) {
    const button = (id, text, press) => make('button', {id, onclick: press}, text);
    const check = (kind, text) => make('label', {}, make('input', {type: 'checkbox', id: 'stop-' + kind, onchange: () => this.sendWatches()}), ' ' + text);
    const bound = (kind, text, least) => make('label', {}, text + ' ', make('input', {type: 'number', id: 'stop-' + kind, min: least, step: 'any', onchange: () => this.sendWatches()}));
    const until = make('input', {id: 'live-until', list: 'conditions', placeholder: 'has_inf_or_nan, matmul, model.cpp:31, step 3', 'aria-label': 'Condition to continue until', size: 42});
    const search = make('input', {type: 'search', id: 'live-search', placeholder: 'regular expression', 'aria-label': 'Filter of the ops to watch, a regular expression'});
    search.addEventListener('input', () => this.showNodes());
    const goOn = () => { if (until.value.trim()) this.send('cont until ' + until.value); };
    until.addEventListener('keydown', event => { if (event.key === 'Enter') goOn(); });
    panel.append(make('div', {id: 'live-state', class: 'state', role: 'status'}),
      make('div', {class: 'bar'}, button('live-step', 'step', () => this.send('step ' + (element('live-steps').value || 1))), make('label', {}, 'ops ', make('input', {type: 'number', id: 'live-steps', min: 1, value: 1})),
        button('live-continue', 'continue', () => this.send('cont')), button('live-pause', 'pause', () => this.send('step')),
        until, make('datalist', {id: 'conditions'}), button('live-until-go', 'continue until', goOn), button('live-quit', 'run on without stops', () => this.send('quit')),
        ...(run.logs ? [make('a', {href: root + 'logs', target: '_blank'}, 'curves and pictures')] : [])),
      make('div', {class: 'bar'}, 'Stop at: ', check('anomalies', 'NaN or infinity'), check('all_zero', 'all zero'), bound('bound', 'magnitude above', 0), bound('gradient_norm', 'gradient norm above', 0), bound('scale_change', 'norm changed by factor', 1.001)),
      make('h2', {}, 'Ops, to watch or to stop at'), make('div', {class: 'bar'}, search),
      make('div', {class: 'nodes'}, make('table', {}, make('thead', {}, make('tr', {}, ...['watch', 'stop', 'op', 'times', 'last result'].map(text => make('th', {}, text)))), make('tbody', {id: 'live-nodes'}))),
      make('div', {class: 'cards', id: 'live-watched'}), make('h2', {}, 'Debugger'), make('pre', {id: 'live-console', class: 'console', tabindex: 0, 'aria-label': 'What the debugger has printed'}), this.commandBox());
    ask('complete', 'cont until ').then(found => { if (Array.isArray(found)) element('conditions').append(...found.map(value => make('option', {value}))); }).catch(() => {});
    this.poll();
  }
}
live = new Live();
addPanel('live', 'Live', panel => live.show(panel));
panels.unshift(panels.pop());
