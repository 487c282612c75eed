'use strict';
const plane = {left: 58, top: 12, right: 448, bottom: 250};
const data = JSON.parse(document.getElementById('data').textContent);
/** @type {(id: string) => any} */
const byId = id => document.getElementById(id);
const hidden = new Set();
const short = (x, digits) => {
  if (!Number.isFinite(x)) return Number.isNaN(x) ? 'NaN' : x > 0 ? '∞' : '−∞';
  return String(Number(x.toPrecision(digits))).replace('e+', 'e');
};
for (const chart of data.charts)
  for (const curve of chart.curves) curve.values = curve.values.map(Number);

function smoothed(values, weight) {
  let last = 0, count = 0;
  return values.map(value => {
    if (!Number.isFinite(value)) return value;
    last = last * weight + (1 - weight) * value;
    return last / (1 - Math.pow(weight, ++count));
  });
}

function axis(low, high, log, margin, integers) {
  if (!(low <= high)) [low, high] = log ? [0.1, 1] : [0, 1];
  const to = log ? Math.log10 : x => x;
  let a = to(low), b = to(high);
  if (b - a < Math.max(Math.abs(a), Math.abs(b), 1e-300) * 1e-9) {
    const half = a === 0 || log || integers ? 0.5 : Math.abs(a) / 10;
    [a, b] = [a - half, b + half];
  }
  const room = margin * (b - a);
  [a, b] = [a - room, b + room];
  const at = x => (to(x) - a) / (b - a), ticks = [];
  if (log && b - a >= 1) {
    const step = Math.max(1, Math.ceil((b - a) / 5));
    for (let i = Math.floor(a / step) * step; i <= b; i += step)
      for (const factor of b - a < 2.5 ? [1, 2, 5] : [1]) {
        const p = (i + Math.log10(factor) - a) / (b - a);
        if (p >= 0 && p <= 1) ticks.push([p, short(factor * 10 ** i, 3)]);
      }
  } else {
    const [from, to] = log ? [10 ** a, 10 ** b] : [a, b];
    const power = 10 ** Math.floor(Math.log10((to - from) / 5));
    const wanted = [1, 2, 5, 10].map(f => f * power).find(s => s >= (to - from) / 5) || 10 * power;
    const step = integers ? Math.max(wanted, 1) : wanted;
    for (let i = Math.ceil(from / step - 1e-9); i * step <= to + step * 1e-9 && ticks.length < 32; ++i) ticks.push([at(i * step), short(i * step, 6)]);
  }
  return {at, ticks};
}

const spot = (x, y) => [plane.left + x * (plane.right - plane.left), plane.bottom - y * (plane.bottom - plane.top)];

function pathOf(xs, ys) {
  let path = '', joined = false;
  xs.forEach((x, i) => {
    const [px, py] = spot(x, ys[i]);
    if (Number.isFinite(py)) path += (joined ? 'L' : 'M') + px.toFixed(1) + ' ' + py.toFixed(1);
    joined = Number.isFinite(py);
  });
  return path;
}

function draw(chart) {
  const figure = byId(chart.id), svg = figure.querySelector('svg');
  const weight = Number(byId('smooth').value), log = byId('log').checked, byTime = byId('axis').value === 'time';
  const shown = chart.curves.filter(curve => !hidden.has(curve.run)).map(curve => {
    const start = byTime ? Math.min(...curve.times) : 0;
    const xs = byTime ? curve.times.map(t => (t - start) / 60) : curve.steps;
    return {run: curve.run, xs, raw: curve.values, ys: weight > 0 ? smoothed(curve.values, weight) : curve.values};
  });
  const usable = y => Number.isFinite(y) && (!log || y > 0);
  let x0 = Infinity, x1 = -Infinity, y0 = Infinity, y1 = -Infinity;
  for (const {xs, raw} of shown)
    raw.forEach((y, i) => {
      x0 = Math.min(x0, xs[i]); x1 = Math.max(x1, xs[i]);
      if (usable(y)) { y0 = Math.min(y0, y); y1 = Math.max(y1, y); }
    });
  chart.all = [x0, x1];
  const zoomed = rangeWithin(chart.zoom, x0, x1);
  if (zoomed) {
    [x0, x1] = zoomed;
    y0 = Infinity; y1 = -Infinity;
    for (const {xs, raw} of shown) raw.forEach((y, i) => { if (usable(y) && xs[i] >= x0 && xs[i] <= x1) { y0 = Math.min(y0, y); y1 = Math.max(y1, y); } });
  }
  const x = axis(x0, x1, false, zoomed ? 0 : 0.01, !byTime), y = axis(y0, y1, log, 0.05, false);
  let axes = '';
  for (const [p, label] of y.ticks) {
    const [, py] = spot(0, p);
    axes += `<path d="M${plane.left} ${py}H${plane.right}"/><text x="${plane.left - 6}" y="${py + 4}" text-anchor="end">${label}</text>`;
  }
  for (const [p, label] of x.ticks) {
    const [px] = spot(p, 0);
    axes += `<path d="M${px} ${plane.top}V${plane.bottom}"/><text x="${px}" y="${plane.bottom + 17}" text-anchor="middle">${label}</text>`;
  }
  svg.querySelector('.axes').innerHTML = axes;
  let curves = '';
  for (const {run, xs, raw, ys} of shown) {
    const kind = `c${run % 7} d${Math.floor(run / 7) % 4}`, px = xs.map(x.at);
    const place = list => list.map(v => usable(v) ? y.at(v) : NaN);
    if (weight > 0) curves += `<path class="${kind} raw" d="${pathOf(px, place(raw))}"/>`;
    curves += `<path class="${kind}" d="${pathOf(px, place(ys))}"/>`;
    raw.forEach((v, i) => {
      if (Number.isFinite(v)) {
        if (raw.length > 1) return;
        const [cx, cy] = spot(px[i], place(raw)[i]);
        if (Number.isFinite(cy)) curves += `<circle class="${kind}" cx="${cx}" cy="${cy}" r="3"/>`;
        return;
      }
      const [mx] = spot(px[i], 0), above = v > 0;
      curves += `<text class="mark c${run % 7}" x="${mx}" y="${above ? plane.top + 8 : plane.bottom - 3}">${Number.isNaN(v) ? '×' : above ? '▲' : '▼'}</text>`;
    });
  }
  svg.querySelector('.curves').innerHTML = `<clipPath id="of-${chart.id}"><rect x="${plane.left}" y="${plane.top - 4}" width="${plane.right - plane.left}" height="${plane.bottom - plane.top + 8}"/></clipPath><g clip-path="url(#of-${chart.id})">${curves}</g>`;
  chart.shown = {shown, x, byTime, range: [x0, x1]};
}

function point(chart, event) {
  const figure = byId(chart.id), svg = figure.querySelector('svg'), box = svg.getBoundingClientRect();
  figure.querySelectorAll('.tip, .cursor').forEach(e => e.remove());
  if (event.type === 'pointerleave') return;
  const {shown, x, byTime} = chart.shown;
  const wanted = ((event.clientX - box.left) / box.width * 460 - plane.left) / (plane.right - plane.left);
  let nearest = null;
  for (const {xs} of shown)
    for (const value of xs) if (nearest === null || Math.abs(x.at(value) - wanted) < Math.abs(x.at(nearest) - wanted)) nearest = value;
  if (nearest === null) return;
  const [px] = spot(x.at(nearest), 0);
  svg.insertAdjacentHTML('beforeend', `<path class="cursor" d="M${px} ${plane.top}V${plane.bottom}"/>`);
  const tip = document.createElement('div');
  tip.className = 'tip';
  tip.textContent = byTime ? short(nearest, 4) + ' min' : 'step ' + nearest;
  for (const {run, xs, ys} of shown) {
    let best = 0;
    xs.forEach((value, i) => { if (Math.abs(value - nearest) < Math.abs(xs[best] - nearest)) best = i; });
    const line = document.createElement('div');
    line.textContent = data.runs[run] + ': ' + short(ys[best], 5);
    line.style.color = `var(--c${run % 7})`;
    tip.append(line);
  }
  figure.append(tip);
  const left = event.clientX - figure.getBoundingClientRect().left;
  tip.style.top = '44px';
  if (left > figure.clientWidth / 2) tip.style.right = (figure.clientWidth - left + 12) + 'px';
  else tip.style.left = (left + 12) + 'px';
}

const drawAll = () => data.charts.forEach(draw);
for (const chart of data.charts) {
  const svg = byId(chart.id).querySelector('svg');
  draw(chart);
  for (const kind of ['pointermove', 'pointerleave']) svg.addEventListener(kind, event => point(chart, event));
  makeZoomable(svg, plane, 460, () => chart.shown.range, range => {
    chart.zoom = rangeWithin(range, ...chart.all);
    draw(chart);
  });
}
byId('axis').addEventListener('input', () => data.charts.forEach(chart => { chart.zoom = null; }));
for (const id of ['smooth', 'log', 'axis']) byId(id).addEventListener('input', drawAll);
document.querySelectorAll('.runs li').forEach((item, run) => {
  const box = document.createElement('input');
  box.type = 'checkbox';
  box.checked = true;
  box.setAttribute('aria-label', 'show ' + data.runs[run]);
  box.addEventListener('input', () => { box.checked ? hidden.delete(run) : hidden.add(run); drawAll(); });
  item.prepend(box);
});
byId('controls').hidden = data.charts.length === 0;
