const colours = Array.from({length: 7}, (_, i) => `var(--c${i})`);
// A line chart as SVG, which can be zoomed into: series of [name, [[x, y], …]].
const chartPlane = {left: 62, right: 690, top: 12, bottom: 240};
let chartCount = 0;
function lineChart(series, options = {}) {
  const svg = draw('svg', {viewBox: '0 0 700 270', role: 'img', 'aria-label': (options.label ?? '') + '; drag, or use + − ← → 0, to zoom'});
  const id = 'plane-' + ++chartCount, xs = series.flatMap(([, points]) => points.map(([x]) => x));
  let low = Infinity, high = -Infinity, shown = null;
  for (const x of xs) { low = Math.min(low, x); high = Math.max(high, x); }
  drawLines(svg, id, series, options, null);
  if (low < high) makeZoomable(svg, chartPlane, 700, () => shown ?? [low, high], range => {
    shown = rangeWithin(range, low, high);
    drawLines(clear(svg), id, series, options, shown);
  });
  return svg;
}
function drawLines(svg, id, series, {log = false}, range) {
  const {left, right, top, bottom} = chartPlane, usable = y => Number.isFinite(y) && (!log || y > 0);
  const to = y => log ? Math.log10(y) : y;
  let x0 = Infinity, x1 = -Infinity, y0 = Infinity, y1 = -Infinity;
  for (const [, points] of series) for (const [x, y] of points) if (usable(y) && (!range || (x >= range[0] && x <= range[1]))) {
    x0 = Math.min(x0, x); x1 = Math.max(x1, x); y0 = Math.min(y0, to(y)); y1 = Math.max(y1, to(y));
  }
  if (range) [x0, x1] = range;
  if (!(x0 <= x1 && y0 <= y1)) return;
  if (x0 === x1) x1 = x0 + 1;
  if (y1 - y0 < 1e-12) { y0 -= 0.5; y1 += 0.5; }
  const px = x => left + (x - x0) / (x1 - x0) * (right - left), py = y => bottom - (to(y) - y0) / (y1 - y0) * (bottom - top);
  const axes = draw('g', {class: 'axes'});
  for (let i = 0; i <= 4; ++i) {
    const value = y0 + (y1 - y0) * i / 4, y = bottom - (bottom - top) * i / 4, x = left + (right - left) * i / 4;
    axes.append(draw('path', {d: `M${left} ${y}H${right}`}), draw('text', {x: left - 6, y: y + 4, 'text-anchor': 'end'}, number(log ? 10 ** value : value, 3)));
    axes.append(draw('text', {x, y: bottom + 17, 'text-anchor': 'middle'}, number(x0 + (x1 - x0) * i / 4, 4)));
  }
  svg.append(axes);
  const clip = draw('clipPath', {id}), curves = draw('g', {class: 'curves', 'clip-path': `url(#${id})`});
  clip.append(draw('rect', {x: left, y: top - 4, width: right - left, height: bottom - top + 8}));
  svg.append(clip);
  series.forEach(([name, points], k) => {
    let path = '';
    for (const [x, y] of points) path += usable(y) ? (path ? 'L' : 'M') + px(x).toFixed(1) + ' ' + py(y).toFixed(1) : '';
    const curve = draw('path', {d: path, class: `c${k % 7} d${Math.floor(k / 7) % 4}`});
    curve.append(draw('title', {}, name));
    curves.append(curve);
    if (points.length === 1 && usable(points[0][1])) curves.append(draw('circle', {class: `c${k % 7}`, cx: px(points[0][0]), cy: py(points[0][1]), r: 3}));
  });
  svg.append(curves);
}
function legend(names) {
  return make('div', {class: 'legend'}, ...names.map((name, k) => make('span', {}, make('i', {style: `background: ${colours[k % 7]}`}), name)));
}
function card(title, ...content) { return make('figure', {}, make('figcaption', {}, title), ...content); }

// The norms of the gradients of a line's outputs by step and by execution within the step.
function gradientLoops(r) {
  const loops = new Map();
  for (let i = 0; i < r.count; ++i) {
    if (r.kind[i] !== 1) continue;
    const key = r.lineKey(i);
    let loop = loops.get(key);
    if (!loop) loops.set(key, loop = {key, steps: new Map(), most: 0});
    let list = loop.steps.get(r.step[i]);
    if (!list) loop.steps.set(r.step[i], list = []);
    const gradient = r.gradientOf.get(r.id[i]), o = gradient === undefined ? undefined : r.out[gradient][0];
    const notes = r.notes[i];
    // Of several executions in one time step, which the notes tell apart, the last one counts.
    if (notes && list.length && list.at(-1).notes === notes) list.pop();
    list.push({i, notes, norm: o && o.length > 3 ? normOf(o) : undefined});
    loop.most = Math.max(loop.most, list.length);
  }
  return [...loops.values()].filter(loop => loop.most >= 3 && [...loop.steps.values()].some(list => list.some(one => one.norm !== undefined)));
}
// From violet over green to yellow, as the share of the range of powers of ten grows.
function heat(share) {
  const stops = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
  const at = Math.min(3.999, Math.max(0, share) * 4), k = Math.floor(at), f = at - k;
  return `rgb(${stops[k].map((c, j) => Math.round(c + f * (stops[k + 1][j] - c))).join(' ')})`;
}
// Paints rows of norms, as many as `columns` in the longest, and returns the powers of ten of the lowest colour and the
// highest: equally many in each map, so that maps can be compared.
/** @returns {[number, number]} */
function paintNorms(canvas, rows, columns) {
  let high = -Infinity;
  for (const row of rows) for (const norm of row) if (norm > 0) high = Math.max(high, Math.log10(norm));
  const low = high - 12;
  canvas.width = Math.max(600, columns * 6);
  const context = canvas.getContext('2d'), w = canvas.width / columns, h = canvas.height / rows.length;
  rows.forEach((row, y) => row.forEach((norm, x) => {
    context.fillStyle = norm > 0 ? heat((Math.log10(norm) - low) / (high - low)) : norm === 0 ? 'rgb(20 8 28)' : norm === null ? 'rgb(220 30 30)' : 'rgb(128 128 128 / 0.3)';
    context.fillRect(x * w, y * h, Math.ceil(w), Math.ceil(h));
  }));
  return [low, high];
}
const colourText = ([low, high]) => (high > -Infinity ? `From ${number(10 ** low, 2)} or less (violet; black: 0) to ${number(10 ** high, 2)} (yellow)` : 'Black: 0') + '; red: NaN or infinity.';
// The norms of the parameters' gradients: a row for each parameter, a column for each step.
function parameterMap(r, names) {
  const steps = [...new Set(r.updates.map(u => u[0]))], every = Math.ceil(steps.length / 400), columns = new Map();
  steps.forEach((step, k) => { if (k % every === 0) columns.set(step, columns.size); });
  const rows = new Map(names.map(name => [name, Array(columns.size).fill()]));
  for (const [step, name, , norm] of r.updates) if (columns.has(step)) rows.get(name)[columns.get(step)] = norm;
  const canvas = make('canvas', {class: 'heat parameters', role: 'img', 'aria-label': `Norms of gradients of ${r.name} by parameter and step`});
  canvas.height = 14 * names.length;
  canvas.style.height = canvas.height + 'px';
  const range = paintNorms(canvas, [...rows.values()], columns.size), shown = [...columns.keys()];
  return card('Gradient norm by parameter and step', make('div', {class: 'heat-rows'}, make('div', {class: 'heat-names'}, ...names.map(name => make('div', {title: r.texts[name]}, r.texts[name]))), canvas),
    make('p', {}, `Across: steps ${shown[0]} to ${shown.at(-1)}. ${colourText(range)}`));
}
function heatMap(r, loops, title) {
  const chosenLoop = make('select', {'aria-label': 'Loop of ' + title, class: 'heat-loop'}, ...loops.map((loop, k) => make('option', {value: k}, `${loop.key} (${loop.most} executions a step)`)));
  const canvas = make('canvas', {class: 'heat', role: 'img', 'aria-label': 'Norms of gradients by step and time step'}), note = make('p');
  const paint = () => {
    const loop = loops[chosenLoop.value], steps = [...loop.steps.keys()].sort((a, b) => a - b);
    const shown = steps.length > 200 ? steps.filter((_, k) => k % Math.ceil(steps.length / 200) === 0) : steps;
    canvas.height = Math.max(140, shown.length * 14);
    const [low, high] = paintNorms(canvas, shown.map(step => loop.steps.get(step).map(one => one.norm)), loop.most);
    canvas.onclick = event => {
      const box = canvas.getBoundingClientRect();
      const list = loop.steps.get(shown[Math.min(shown.length - 1, Math.floor((event.clientY - box.top) / box.height * shown.length))]);
      const one = list[Math.min(list.length - 1, Math.floor((event.clientX - box.left) / box.width * loop.most))];
      if (one) { run = r; goTo(one.i); }
    };
    const first = loop.steps.get(shown[0]).map(one => one.norm).filter(norm => norm !== undefined);
    note.textContent = `Across: the executions of the line within a step, the first on the left; down: steps ${shown[0]} to ${shown.at(-1)}. `
      + `${colourText([low, high])} ${first[0] && first.at(-1) ? `In step ${shown[0]} the first gradient is ${number(first[0] / first.at(-1), 3)} of the last. ` : ''}A click shows the op.`;
  };
  chosenLoop.addEventListener('change', paint);
  paint();
  return card(title, chosenLoop, canvas, note);
}
addPanel('gradients', 'Gradients', panel => {
  panel.append(make('h2', {}, 'Gradients over time steps'));
  for (const r of all) {
    const loops = gradientLoops(r).sort((a, b) => b.most - a.most);
    panel.append(loops.length ? heatMap(r, loops, r.name) : make('p', {}, `${r.name}: no line of a recorded step was executed three times or more and differentiated.`));
  }
  for (const r of all) {
    const names = [...new Set(r.updates.map(u => u[1]))];
    if (!names.length) continue;
    const of = value => names.map(name => [r.texts[name], r.updates.filter(u => u[1] === name).map(u => [u[0], value(u)])]);
    panel.append(make('h2', {}, 'Parameters of ' + r.name), parameterMap(r, names), make('div', {class: 'cards'},
      card('Gradient norm', lineChart(of(u => u[3]), {log: true, label: 'Gradient norm of each parameter over steps'})),
      card('Update-to-weight ratio', lineChart(of(u => u[4] / u[2]), {log: true, label: 'Norm of the update by the norm of the weights, over steps'})),
      card('Weight norm', lineChart(of(u => u[2]), {label: 'Norm of each parameter over steps'}))), legend(names.map(name => r.texts[name])));
  }
});

function showHistograms(panel, histograms) {
  if (!histograms.length) return;
  const cards = make('div', {class: 'cards'});
  for (const [title, low, high, counts] of histograms) {
    const most = Math.max(...counts), svg = draw('svg', {viewBox: '0 0 400 130', role: 'img', 'aria-label': 'Histogram of ' + title});
    counts.forEach((count, k) => svg.append(draw('rect', {x: 10 + k * 19, y: 110 - 100 * count / most, width: 18, height: 100 * count / most, fill: 'var(--c0)'})));
    svg.append(draw('text', {x: 10, y: 125}, number(low, 3)), draw('text', {x: 390, y: 125, 'text-anchor': 'end'}, number(high, 3)));
    cards.append(card(title, svg));
  }
  panel.append(make('h2', {}, 'Histograms of the values that were kept'), cards);
}
// The units that are zero in all executions so far: UNITS and an array of 4 bits a number; null: none.
function zeroUnits(before, code) {
  if (code === 0) return null;
  const [units, digits] = String(code).split(':');
  if (!digits || before === null || (before && before.units !== units)) return before && code === 1 ? before : null;
  const bits = [...digits].map(digit => parseInt(digit, 16));
  return {units, bits: before ? before.bits.map((bit, k) => bit & bits[k]) : bits};
}
const countUnits = found => found ? found.bits.reduce((sum, bits) => sum + [0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4][bits], 0) : 0;
// The number of dead units of each line and module by step: those that are zero in all of its executions in the step.
function deadUnits(r) {
  const lines = new Map();
  for (let i = 0; i < r.count; ++i) {
    const o = r.out[i][0];
    if (r.kind[i] !== 1 || !o || o.length < 4) continue;
    const key = r.lineKey(i);
    let line = lines.get(key);
    if (!line) lines.set(key, line = {key, steps: new Map()});
    line.steps.set(r.step[i], zeroUnits(line.steps.get(r.step[i]), r.zero[i]));
  }
  const found = new Map();
  for (const line of lines.values()) {
    const points = [...line.steps].map(([step, units]) => [step, countUnits(units)]), last = [...line.steps.values()].at(-1);
    if (points.some(([, count]) => count > 0)) found.set(line.key, {points, units: [...line.steps.values()].find(units => units).units, last: countUnits(last)});
  }
  return found;
}
addPanel('activations', 'Activations', panel => {
  const lines = new Map(), dead = deadUnits(run);
  for (let i = 0; i < run.count; ++i) {
    const o = run.out[i][0];
    if (run.kind[i] !== 1 || !o || o.length < 4) continue;
    const key = run.lineKey(i);
    let line = lines.get(key);
    if (!line) lines.set(key, line = {key, first: i, count: 0, zeros: 0, elements: 0, min: Infinity, max: -Infinity, dead: 0});
    ++line.count;
    line.zeros += o[9];
    line.elements += o[10];
    if (typeof o[3] === 'number') { line.min = Math.min(line.min, o[3]); line.max = Math.max(line.max, o[4]); }
    line.dead += o[10] > 1 && o[9] === o[10] ? 1 : 0;
  }
  const rows = [...lines.values()].sort((a, b) => b.zeros / b.elements - a.zeros / a.elements);
  panel.append(make('h2', {}, 'Results by line, those with most zeros first'), make('p', {}, 'A unit, an index of the last axis or a channel of images, is dead in a step if it is zero in all executions and examples there.'),
    table(['op and line', 'executions', 'zeros', '', 'dead units, last step', 'all zero', 'smallest', 'largest'], rows.slice(0, 200).map(line => {
      const share = line.elements ? line.zeros / line.elements : 0;
      const found = dead.get(line.key);
      return [linkTo(line.first, line.key), line.count, (100 * share).toFixed(1) + ' %', make('span', {class: 'share', style: `width: ${Math.round(share * 120)}px`}), found ? `${found.last} of ${found.units}` : '0', line.dead, ...(line.min <= line.max ? [number(line.min), number(line.max)] : ['none', 'none'])];
    }), [1, 2, 4, 5, 6, 7]));
  const most = [...dead].sort((a, b) => b[1].last - a[1].last).slice(0, 7);
  if (most.length) panel.append(card('Dead units by step', lineChart(most.map(([key, {points}]) => [key, points]), {label: 'The number of dead units of a line, over steps'}), legend(most.map(([key]) => key))));
  if (live) live.loadHistograms().then(list => showHistograms(panel, list));
  else showHistograms(panel, run.histograms);
});

function profileBy(key) {
  const rows = new Map();
  let total = 0;
  for (let i = 0; i < run.count; ++i) {
    if (run.kind[i] !== 1 && run.kind[i] !== 3) continue;
    const name = key(i);
    let row = rows.get(name);
    if (!row) rows.set(name, row = {name, count: 0, forward: 0, backward: 0, bytes: 0, first: i});
    if (run.kind[i] === 1) {
      ++row.count;
      row.forward += run.duration[i];
      for (const o of run.out[i]) row.bytes += o[2];
    } else row.backward += run.duration[i];
    total += run.duration[i];
  }
  return {rows: [...rows.values()].sort((a, b) => b.forward + b.backward - a.forward - a.backward), total};
}
addPanel('profile', 'Profile', panel => {
  const keys = {op: i => run.text('op', i), line: i => run.location(i), module: i => run.text('module', i) || '(no module)'};
  const choice = make('select', {id: 'profile-by', 'aria-label': 'Rows of the profile'}, ...Object.keys(keys).map(key => make('option', {value: key}, 'by ' + key)));
  const host = make('div', {id: 'profile-table'});
  const show = () => {
    const {rows, total} = profileBy(keys[choice.value]);
    clear(host).append(table([choice.value, 'calls', 'forward', 'backward', 'share', '', 'results'], rows.slice(0, 300).map(row => [linkTo(row.first, row.name), row.count, timeText(row.forward), timeText(row.backward),
      (100 * (row.forward + row.backward) / total || 0).toFixed(1) + ' %',
      make('span', {}, make('span', {class: 'share', style: `width: ${Math.round(200 * row.forward / total || 0)}px`}), make('span', {class: 'share back', style: `width: ${Math.round(200 * row.backward / total || 0)}px`})), bytesText(row.bytes)]), [1, 2, 3, 4, 6]));
  };
  choice.addEventListener('change', show);
  panel.append(make('p', {}, 'Times are those of the recorded run, which recording makes slower; debug::Profile measures without.'), make('div', {class: 'bar'}, choice), host);
  show();
});

// Bytes of results that are still needed: from the op to the last one that has it as an input, or to its gradient.
function memoryByLine() {
  const deltas = new Map();
  const change = (line, at, bytes) => {
    let list = deltas.get(line);
    if (!list) deltas.set(line, list = []);
    list.push([at, bytes]);
  };
  for (let i = 0; i < run.count; ++i) {
    if (run.kind[i] > 1) continue;
    const bytes = run.out[i].reduce((sum, o) => sum + o[2], 0);
    if (!bytes) continue;
    let last = run.consumers(i).at(-1) ?? i;
    const gradient = run.gradientOf.get(run.id[i]);
    if (gradient !== undefined) last = Math.max(last, gradient);
    const line = run.location(i);
    change(line, i, bytes);
    change(line, last + 1, -bytes);
  }
  return deltas;
}
addPanel('memory', 'Memory', panel => {
  const series = [];
  let peak = 0, peakAt = 0;
  const totals = new Float64Array(run.count + 2);
  for (const [line, list] of memoryByLine()) {
    list.sort((a, b) => a[0] - b[0]);
    let live = 0, most = 0;
    const points = [];
    for (const [at, bytes] of list) { live += bytes; totals[at] += bytes; most = Math.max(most, live); points.push([at, live]); }
    series.push({line, most, points});
  }
  let live = 0;
  for (let i = 0; i < totals.length; ++i) { live += totals[i]; if (live > peak) { peak = live; peakAt = i; } }
  series.sort((a, b) => b.most - a.most);
  const shown = series.slice(0, 6);
  const thin = points => points.length > 2000 ? points.filter((_, k) => k % Math.ceil(points.length / 2000) === 0) : points;
  panel.append(make('h2', {}, 'Results that are still needed, by the line that made them'),
    make('p', {}, 'At most ', bytesText(peak), ', at ', run.count ? linkTo(Math.min(peakAt, run.count - 1), run.sentence(Math.min(peakAt, run.count - 1))) : '', '; a result counts until the last op that uses it, or its gradient.'),
    card('Bytes over the ops', lineChart(shown.map(({line, points}) => [line, thin(points)]), {label: 'Bytes of live results by line, over the ops'})), legend(shown.map(({line}) => line)),
    table(['line', 'most at a time'], series.slice(0, 100).map(({line, most}) => [line, bytesText(most)]), [1]));
});
