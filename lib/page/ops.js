const rowHeight = 22;
let chosen = [], current = -1;
function visibleOps(pattern, shownKinds, from = 0) {
  /** @type {(i: number) => boolean} */
  let test = () => true;
  if (pattern) {
    const expression = new RegExp(pattern, 'i');
    test = i => expression.test(run.searchText(i));
  }
  const found = [];
  for (let i = from; i < run.count; ++i) if (shownKinds[run.kind[i]] && test(i)) found.push(i);
  return found;
}
function renderRows() {
  const list = element('op-list'), rows = element('op-rows');
  const first = Math.max(0, Math.floor(list.scrollTop / rowHeight) - 8);
  const last = Math.min(chosen.length, first + Math.ceil(list.clientHeight / rowHeight) + 16);
  clear(rows).style.top = first * rowHeight + 'px';
  for (let k = first; k < last; ++k) {
    const i = chosen[k], output = run.out[i][0];
    const row = make('div', {class: 'row' + (i === current ? ' here' : '') + (run.isBad(i) ? ' bad' : '') + (run.kind[i] === 1 ? '' : ' faint'), role: 'option',
      'aria-selected': i === current, id: 'op-' + run.id[i], onclick: () => selectOp(i)});
    const name = output && run.texts[output[1]];
    for (const text of ['%' + run.id[i], run.opName(i) + (name ? ` '${name}'` : ''), output ? run.form(output) : '', run.text('module', i), run.location(i), timeText(run.duration[i])])
      row.append(make('span', {title: text}, text));
    rows.append(row);
  }
}
function filterOps() {
  const box = element('op-search'), shownKinds = kinds.map(kind => element('kind-' + kind).checked);
  try {
    chosen = visibleOps(box.value, shownKinds);
    box.setCustomValidity('');
  } catch (error) {
    box.setCustomValidity(error.message);
    box.reportValidity();
    return;
  }
  showCount();
  element('op-list').scrollTop = 0;
  renderRows();
}
function showCount() {
  element('op-count').textContent = `${chosen.length} of ${run.count} ops`;
  element('op-space').style.height = chosen.length * rowHeight + 'px';
}
// Adds ops that a running program has sent to the list, which keeps its place.
function listNewOps(from) {
  if (!panels.find(panel => panel.id === 'ops').shown || !element('op-search').validity.valid) return;
  const shownKinds = kinds.map(kind => element('kind-' + kind).checked);
  for (const i of visibleOps(element('op-search').value, shownKinds, from)) chosen.push(i);
  showCount();
  renderRows();
}
function selectOp(i) {
  current = i;
  let k = chosen.indexOf(i);
  if (k < 0) {
    element('op-search').value = '';
    for (const kind of kinds) element('kind-' + kind).checked = true;
    filterOps();
    k = chosen.indexOf(i);
  }
  const list = element('op-list'), top = k * rowHeight;
  if (top < list.scrollTop || top + rowHeight > list.scrollTop + list.clientHeight) list.scrollTop = top - list.clientHeight / 2;
  renderRows();
  element('op-list').setAttribute('aria-activedescendant', 'op-' + run.id[i]);
  showOp(clear(element('op-detail')), i);
}
// @ts-ignore: a window has a function of this name, too.
function moveBy(steps) {
  const k = chosen.indexOf(current);
  const next = Math.min(chosen.length - 1, Math.max(0, k < 0 ? 0 : k + steps));
  if (chosen.length) selectOp(chosen[next]);
}
function nextBad(direction) {
  for (let i = current + direction; i >= 0 && i < run.count; i += direction) if (run.isBad(i)) return selectOp(i);
}
function statisticsText(o) {
  if (o.length < 4) return 'no statistics';
  return `min ${number(o[3])}, max ${number(o[4])}, mean ${number(o[5])}, norm ${number(o[6])}, ${o[7]} NaN, ${o[8]} Inf, ${o[9]} of ${o[10]} zero`;
}
function opLine(i) { return make('div', {}, linkTo(i, run.sentence(i))); }
function showOp(panel, i) {
  panel.dataset.op = i;
  panel.append(make('h3', {}, run.sentence(i)));
  if (run.text('error', i)) panel.append(make('p', {class: 'bad'}, run.text('error', i)));
  panel.append(make('p', {}, `${kinds[run.kind[i]]}${run.duration[i] ? ', ' + timeText(run.duration[i]) : ''}`));
  run.out[i].forEach((o, k) => {
    panel.append(make('h3', {}, `Output ${k}${run.texts[o[1]] ? ` '${run.texts[o[1]]}'` : ''}: ${run.form(o)}, ${bytesText(o[2])}`));
    panel.append(make('div', {class: o[7] + o[8] > 0 ? 'bad' : ''}, statisticsText(o)));
    if (o.length > 11) panel.append(make('pre', {}, o[11]));
    else if (live) panel.append(live.valuesOf(i, k));
  });
  if (run.inputs[i].length) panel.append(make('h3', {}, 'Inputs'));
  for (let k = 0; k < run.inputs[i].length; k += 2) {
    const from = run.index.get(run.inputs[i][k]);
    panel.append(from === undefined ? make('div', {}, `%${run.inputs[i][k]} is not in the recording`) : opLine(from));
  }
  const users = run.consumers(i);
  if (users.length) panel.append(make('h3', {}, 'Used by'), ...users.slice(0, 12).map(opLine));
  if (users.length > 12) panel.append(make('p', {}, `and ${users.length - 12} more`));
  const gradient = run.gradientOf.get(run.id[i]);
  if (gradient !== undefined) panel.append(make('h3', {}, 'Gradient'), opLine(gradient), make('div', {}, run.out[gradient].map(statisticsText).join('; ')));
  if (run.forward[i] && run.index.has(run.forward[i])) panel.append(make('h3', {}, 'Of'), opLine(run.index.get(run.forward[i])));
  if (live && run.sources[run.file[i]] === undefined) live.loadSource(run.file[i]).then(() => { if (panel.dataset.op === String(i)) showSource(panel, i); });
  else showSource(panel, i);
}
// The tensors that each line of a file made last, up to an op.
function madeUpTo(file, i) {
  const made = new Map();
  for (let j = Math.max(0, i - 20000); j <= i; ++j)
    if (run.file[j] === file && run.kind[j] <= 1) made.set(run.line[j], j);
  return made;
}
function showSource(panel, i) {
  const lines = run.sources[run.file[i]];
  if (!lines) return;
  const made = madeUpTo(run.file[i], i), pre = make('div', {class: 'source'});
  const middle = run.line[i];
  for (let n = Math.max(1, middle - 12); n <= Math.min(lines.length, middle + 12); ++n) {
    const line = make('div', n === middle ? {class: 'at'} : {}, String(n).padStart(5) + '  ' + lines[n - 1]);
    const j = made.get(n);
    if (j !== undefined && run.out[j].length) {
      const o = run.out[j][0];
      line.append(make('span', {class: 'made'}, `   ${run.opName(j)} ${run.form(o)}` + (o.length > 3 ? ` mean ${number(o[5], 3)}, norm ${number(o[6], 3)}` : '')));
    }
    pre.append(line);
  }
  panel.append(make('h3', {}, run.texts[run.file[i]]), pre);
}
addPanel('ops', 'Ops', panel => {
  const search = make('input', {type: 'search', id: 'op-search', placeholder: 'regular expression: op, module, file:line, notes, name', 'aria-label': 'Filter of ops, a regular expression'});
  search.addEventListener('input', filterOps);
  const bar = make('div', {class: 'bar'}, search, ...kinds.map(kind => {
    const box = make('input', {type: 'checkbox', id: 'kind-' + kind, onchange: filterOps});
    box.checked = kind !== 'backward';
    return make('label', {}, box, ' ' + kind);
  }), make('button', {id: 'step-back', onclick: () => moveBy(-1)}, '← step back'), make('button', {id: 'step-forward', onclick: () => moveBy(1)}, 'step →'),
    make('button', {id: 'next-anomaly', onclick: () => nextBad(1)}, 'next NaN, Inf or error'), make('span', {id: 'op-count'}));
  const list = make('div', {class: 'list', id: 'op-list', role: 'listbox', tabindex: '0', 'aria-label': 'Ops in the order of execution'},
    make('div', {id: 'op-space'}), make('div', {class: 'rows', id: 'op-rows'}));
  list.addEventListener('scroll', renderRows);
  list.addEventListener('keydown', event => {
    const moves = {ArrowDown: 1, ArrowUp: -1, PageDown: 25, PageUp: -25, j: 1, k: -1, Home: -1e9, End: 1e9};
    if (event.key === 'n') nextBad(1);
    else if (event.key === 'N') nextBad(-1);
    else if (moves[event.key]) moveBy(moves[event.key]);
    else return;
    event.preventDefault();
  });
  panel.append(bar, make('p', {}, 'Keys: ↑ ↓ or j k step, n and N go to the next and the last NaN, infinity or error.'), make('div', {class: 'split'}, list, make('div', {class: 'detail', id: 'op-detail', tabindex: '0', 'aria-label': 'The chosen op'})));
  filterOps();
  if (run.count) selectOp(Math.max(0, firstBad(run)));
});
