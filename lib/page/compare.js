// What each line and op of a run has given.
function linesOf(r) {
  const lines = new Map();
  for (let i = 0; i < r.count; ++i) {
    if (r.kind[i] !== 1 && r.kind[i] !== 3) continue;
    const key = r.lineKey(i);
    let line = lines.get(key);
    if (!line) lines.set(key, line = {key, first: i, count: 0, time: 0, bad: 0, norms: []});
    ++line.count;
    line.time += r.duration[i];
    const o = r.out[i][0];
    if (!o || o.length < 4) continue;
    line.bad += o[7] + o[8];
    line.norms.push([line.count, normOf(o)]);
  }
  return lines;
}
function meanNorm(line) {
  const norms = line ? line.norms.filter(([, norm]) => norm !== null) : [];
  return norms.length ? norms.reduce((sum, [, norm]) => sum + norm, 0) / norms.length : null;
}
// 0 for equal norms, up to 1; 2 for a line that only one run has.
function differenceOf(a, b) {
  const x = meanNorm(a), y = meanNorm(b);
  if (!a || !b) return 2;
  if (x === null || y === null) return x === y ? 0 : 1;
  return Math.max(x, y) > 0 ? Math.abs(x - y) / Math.max(x, y) : 0;
}
function pairLines(a, b) {
  const left = linesOf(a), right = linesOf(b), pairs = [];
  for (const key of new Set([...left.keys(), ...right.keys()])) {
    const pair = {key, a: left.get(key), b: right.get(key)};
    pair.difference = differenceOf(pair.a, pair.b);
    pairs.push(pair);
  }
  return pairs.sort((x, y) => y.difference - x.difference);
}
const thinned = points => points.length > 2000 ? points.filter((_, k) => k % Math.ceil(points.length / 2000) === 0) : points;
function showPair(host, pair, a, b) {
  clear(host);
  const series = [[a.name, pair.a], [b.name, pair.b]].map(([name, line]) => [name, line ? thinned(line.norms) : []]);
  const norms = series.flatMap(([, points]) => points.map(([, norm]) => norm)).filter(norm => norm > 0);
  const log = norms.length > 0 && Math.max(...norms) > 1000 * Math.min(...norms);
  host.append(card(pair.key + ': norm by execution', lineChart(series, {log, label: 'Norms of both runs by execution'}), legend([a.name, b.name])));
}
function parametersOf(r) { return new Set(r.updates.map(update => r.texts[update[1]])); }
function showParameter(host, name, a, b) {
  clear(host);
  const of = value => [a, b].map(r => [r.name, r.updates.filter(update => r.texts[update[1]] === name).map(update => [update[0], value(update)])]);
  host.append(make('div', {class: 'cards'}, card('Gradient norm', lineChart(of(u => u[3]), {log: true, label: 'Gradient norms of both runs over steps'})),
    card('Update-to-weight ratio', lineChart(of(u => u[4] / u[2]), {log: true, label: 'Update-to-weight ratios of both runs over steps'})),
    card('Weight norm', lineChart(of(u => u[2]), {label: 'Weight norms of both runs over steps'}))), legend([a.name, b.name]));
}
if (all.length > 1) addPanel('compare', 'Compare', panel => {
  const choose = (id, text, at) => {
    const select = make('select', {id, onchange: () => show()}, ...all.map((r, k) => make('option', {value: k}, r.name)));
    select.value = at;
    return make('label', {}, text + ' ', select);
  };
  const search = make('input', {type: 'search', id: 'compare-search', placeholder: 'regular expression', 'aria-label': 'Filter of lines, a regular expression'});
  const host = make('div', {id: 'compare-lines', class: 'nodes'}), chart = make('div', {id: 'compare-chart'}), parameters = make('div', {id: 'compare-parameters'});
  let a, b, pairs = [];
  const list = () => {
    let expression;
    try {
      expression = new RegExp(search.value, 'i');
      search.setCustomValidity('');
    } catch (error) {
      search.setCustomValidity(error.message);
      search.reportValidity();
      return;
    }
    const both = (pair, f) => [pair.a ? f(pair.a) : 'none', pair.b ? f(pair.b) : 'none'];
    const rows = pairs.filter(pair => expression.test(pair.key)).slice(0, 300).map(pair => {
      const x = meanNorm(pair.a), y = meanNorm(pair.b);
      return [make('button', {class: 'link', onclick: () => showPair(chart, pair, a, b)}, pair.key), ...both(pair, line => line.count), ...both(pair, line => number(meanNorm(line))),
        x && y ? number(y / x) : '', ...both(pair, line => line.bad), ...both(pair, line => timeText(line.time))];
    });
    clear(host).append(table(['op and line', 'times, left', 'right', 'mean norm, left', 'right', 'right / left', 'NaN and Inf, left', 'right', 'time, left', 'right'], rows, [1, 2, 3, 4, 5, 6, 7, 8, 9]));
  };
  const show = () => {
    [a, b] = ['compare-left', 'compare-right'].map(id => all[element(id).value]);
    pairs = pairLines(a, b);
    list();
    clear(chart);
    if (pairs.length) showPair(chart, pairs[0], a, b);
    clear(parameters);
    const names = [...parametersOf(a)].filter(name => parametersOf(b).has(name));
    if (!names.length) return;
    const drawn = make('div'), select = make('select', {id: 'compare-parameter', onchange: event => showParameter(drawn, event.target.value, a, b)}, ...names.map(name => make('option', {}, name)));
    parameters.append(make('h2', {}, 'A parameter in both runs'), make('div', {class: 'bar'}, make('label', {}, 'Parameter ', select)), drawn);
    showParameter(drawn, names[0], a, b);
  };
  search.addEventListener('input', list);
  panel.append(make('div', {class: 'bar'}, choose('compare-left', 'Left', 0), choose('compare-right', 'right', 1), search),
    make('p', {}, 'Lines whose results differ most come first; the norm is the mean over the executions. The overview has the first op that differs.'), host, chart, parameters);
  show();
});
