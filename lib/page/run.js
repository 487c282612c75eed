'use strict';
const runs = JSON.parse(document.getElementById('runs').textContent);
const kinds = ['source', 'forward', 'backward', 'gradient'];
/** @type {(id: string) => any} */
const element = id => document.getElementById(id);
const clear = node => { while (node.firstChild) node.firstChild.remove(); return node; };
function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes))
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value);
  node.append(...children);
  return node;
}
const svgNamespace = 'http://www.w3.org/2000/svg';
function draw(tag, attributes = {}, text = '') {
  const node = document.createElementNS(svgNamespace, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text) node.textContent = text;
  return node;
}
const number = (x, digits = 4) => x === null ? 'none' : typeof x === 'string' ? x : Number(x.toPrecision(digits)).toString();
// The norm of an output; null: it holds NaN or infinity.
const normOf = o => o[7] + o[8] > 0 ? null : o[6] ?? 0;
function timeText(ns) {
  for (const [unit, factor] of /** @type {[string, number][]} */ ([['s', 1e9], ['ms', 1e6], ['µs', 1e3]])) if (ns >= factor) return number(ns / factor, 3) + ' ' + unit;
  return ns > 0 ? ns + ' ns' : '';
}
function bytesText(bytes) {
  for (const [unit, factor] of /** @type {[string, number][]} */ ([['GB', 1e9], ['MB', 1e6], ['KB', 1e3]])) if (bytes >= factor) return number(bytes / factor, 3) + ' ' + unit;
  return bytes + ' B';
}

const columns = ['inputs', 'out', 'id', 'kind', 'op', 'file', 'line', 'module', 'notes', 'error', 'step', 'start', 'duration', 'forward', 'zero'];
// A run with what is asked of it: ops by index, not by id.
class Run {
  constructor(data) {
    Object.assign(this, data);
    this.count = 0;
    this.index = new Map();
    this.gradientOf = new Map();
    this.lowered = [];
    this.takeNewOps();
  }
  // Adds what a running program has sent.
  append(data) {
    for (const text of data.texts) this.texts.push(text);
    for (const column of columns) for (const value of data[column]) this[column].push(value);
    for (const update of data.updates) this.updates.push(update);
    this.takeNewOps();
    for (const [id, k, text] of data.names) {
      const i = this.index.get(id);
      if (i !== undefined && this.out[i][k]) this.out[i][k][1] = text;
      this.lowered[i] = undefined;
    }
  }
  takeNewOps() {
    for (let i = this.count; i < this.id.length; ++i) {
      this.index.set(this.id[i], i);
      if (this.kind[i] === 3 && this.forward[i] && !this.gradientOf.has(this.forward[i])) this.gradientOf.set(this.forward[i], i);
    }
    this.count = this.id.length;
    this.users = null;
  }
  text(column, i) { return this.texts[this[column][i]]; }
  opName(i) {
    const name = this.text('op', i);
    return this.kind[i] === 3 ? 'gradient of ' + name : name;
  }
  location(i) { return this.line[i] ? this.text('file', i) + ':' + this.line[i] : 'unknown place'; }
  lineKey(i) {
    const module = this.text('module', i);
    return `${this.opName(i)} at ${this.location(i)}` + (module ? ' in ' + module : '');
  }
  // Output k: [form, name, bytes, min, max, mean, norm, NaN, Inf, zeros, elements, values].
  outputs(i) { return this.out[i]; }
  form(output) { return this.texts[output[0]]; }
  isBad(i) { return this.text('error', i) !== '' || this.out[i].some(o => o.length > 3 && o[7] + o[8] > 0); }
  searchText(i) {
    return this.lowered[i] ??= [this.opName(i), this.text('module', i), this.location(i), this.text('notes', i), ...this.out[i].map(o => this.texts[o[1]])].join(' ');
  }
  consumers(i) {
    if (!this.users) {
      this.users = this.id.map(() => []);
      this.inputs.forEach((inputs, j) => {
        for (let k = 0; k < inputs.length; k += 2) {
          const from = this.index.get(inputs[k]);
          if (from !== undefined && this.users[from].at(-1) !== j) this.users[from].push(j);
        }
      });
    }
    return this.users[i];
  }
  sentence(i) {
    const module = this.text('module', i), notes = this.text('notes', i);
    return `%${this.id[i]} ${this.opName(i)} at ${this.location(i)}` + (module ? ' in ' + module : '') + `, step ${this.step[i]}` + (notes ? ', with ' + notes : '');
  }
}
const all = runs.map(data => new Run(data));
let run = all[0];
// Of a page that a running program serves: what it gives on demand, and the ops that are watched. Otherwise null.
let live = null;

const panels = [];
function addPanel(id, title, show) { panels.push({id, title, show, shown: false}); }
function openPanel(id) {
  for (const panel of panels) {
    const open = panel.id === id;
    element('tab-' + panel.id).setAttribute('aria-selected', open);
    element('tab-' + panel.id).tabIndex = open ? 0 : -1;
    element(panel.id).hidden = !open;
    if (open && !panel.shown) { panel.shown = true; panel.show(element(panel.id)); }
  }
}
// Draws the parts anew when they are next seen, after the run has changed.
function refreshPanels(kept = []) {
  for (const panel of panels)
    if (panel.shown && !kept.includes(panel.id)) {
      panel.shown = false;
      clear(element(panel.id));
    }
  const open = panels.find(panel => !element(panel.id).hidden);
  if (open) openPanel(open.id);
}
function startPanels() {
  const nav = element('tabs'), main = element('panels');
  for (const panel of panels) {
    nav.append(make('button', {id: 'tab-' + panel.id, role: 'tab', 'aria-controls': panel.id, onclick: () => openPanel(panel.id)}, panel.title));
    main.append(make('section', {id: panel.id, role: 'tabpanel', 'aria-labelledby': 'tab-' + panel.id, hidden: ''}));
  }
  nav.addEventListener('keydown', event => {
    const move = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (!move) return;
    const at = panels.findIndex(panel => element('tab-' + panel.id) === document.activeElement);
    const next = panels[(at + move + panels.length) % panels.length];
    openPanel(next.id);
    element('tab-' + next.id).focus();
  });
  openPanel(panels[0].id);
}
function table(headings, rows, numeric = []) {
  const body = make('tbody');
  for (const row of rows) body.append(make('tr', {}, ...row.map((cell, i) => make('td', numeric.includes(i) ? {class: 'number'} : {}, cell))));
  return make('div', {class: 'wide'}, make('table', {}, make('thead', {}, make('tr', {}, ...headings.map((h, i) => make('th', numeric.includes(i) ? {class: 'number'} : {}, h)))), body));
}
function goTo(i) { openPanel('ops'); selectOp(i); }
function linkTo(i, text) { return make('button', {class: 'link', onclick: () => goTo(i)}, text); }

function firstBad(r) {
  for (let i = 0; i < r.count; ++i) if (r.isBad(i)) return i;
  return -1;
}
addPanel('overview', 'Overview', panel => {
  if (all.length > 1)
    panel.append(make('label', {class: 'bar'}, 'Run ', make('select', {id: 'run', onchange: event => {
      run = all[event.target.selectedIndex];
      refreshPanels(['overview']);
    }}, ...all.map(r => make('option', {}, r.name)))));
  for (const r of all) {
    const facts = [['recording', r.name], ['program', r.program], ['ops', r.count + (r.dropped ? `, and ${r.dropped} older ones were dropped` : '')],
      ['steps', r.count ? r.step[0] + ' to ' + r.step[r.count - 1] : 'none'],
      ['time', r.count ? timeText(r.start[r.count - 1] + r.duration[r.count - 1]) : ''],
      ['end', r.live ? 'the program runs' : r.complete ? 'the recording was closed' : 'the program ended without closing the recording']];
    panel.append(make('h2', {}, r.name), make('table', {class: 'facts'}, ...facts.map(([key, value]) => make('tr', {}, make('td', {}, key), make('td', {}, value)))));
    const bad = firstBad(r);
    const found = make('p', {id: r === all[0] ? 'first-anomaly' : ''});
    if (bad < 0) found.append('No op gave NaN or infinity, and none threw.');
    else {
      found.append(make('span', {class: 'bad'}, r.text('error', bad) ? 'First error: ' : 'First NaN or infinity: '));
      found.append(make('button', {class: 'link', onclick: () => { run = r; goTo(bad); }}, r.sentence(bad)));
    }
    panel.append(found);
  }
  const difference = element('difference').textContent;
  if (difference) panel.append(make('h2', {}, 'Difference of the first two runs'), make('pre', {}, difference));
});
