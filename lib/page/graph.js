const unfolded = new Set();
function graphOf(step) {
  const nodes = new Map(), edges = new Map(), nodeOf = new Map();
  for (let i = 0; i < run.count; ++i) {
    if (run.step[i] !== step || run.kind[i] > 1) continue;
    const path = run.text('module', i);
    let key, title, module = '';
    const parts = path ? path.split('.') : [];
    let folded = -1;
    for (let n = 1; n <= parts.length && folded < 0; ++n) if (!unfolded.has(parts.slice(0, n).join('.'))) folded = n;
    if (run.kind[i] === 0) {
      const o = run.out[i][0], name = o ? run.texts[o[1]] : '';
      if (run.text('op', i) === 'parameter' && folded >= 0) continue;  // it belongs to the module's node
      key = 's' + (name || run.location(i) + run.text('op', i));
      title = name || run.text('op', i);
    } else if (folded > 0) {
      module = parts.slice(0, folded).join('.');
      key = 'm' + module;
      title = module;
    } else {
      key = 'o' + path + run.location(i) + run.opName(i) + (run.out[i].length ? run.form(run.out[i][0]) : '');
      title = run.opName(i);
    }
    let node = nodes.get(key);
    if (!node) nodes.set(key, node = {key, title, module, kind: run.kind[i], count: 0, first: i, time: 0, order: nodes.size, inner: new Set()});
    ++node.count;
    node.time += run.duration[i];
    if (module) node.inner.add(run.opName(i));
    nodeOf.set(i, node);
    for (let k = 0; k < run.inputs[i].length; k += 2) {
      const from = nodeOf.get(run.index.get(run.inputs[i][k]));
      if (from && from !== node) {
        const edge = from.order + '>' + node.order;
        edges.set(edge, {from, to: node, count: (edges.get(edge)?.count ?? 0) + 1});
      }
    }
  }
  return {nodes: [...nodes.values()], edges: [...edges.values()]};
}
// Layers by the longest path; edges back to an earlier node, as those of a loop, are drawn only.
function layOut({nodes, edges}) {
  for (const node of nodes) node.layer = 0;
  for (const node of nodes) node.next = [];
  for (const edge of edges) if (edge.from.order < edge.to.order) edge.from.next.push(edge.to);
  for (const node of nodes) for (const to of node.next) to.layer = Math.max(to.layer, node.layer + 1);
  const layers = [];
  for (const node of nodes) (layers[node.layer] ??= []).push(node);
  const before = new Map(nodes.map(node => [node, []]));
  for (const {from, to} of edges) before.get(to).push(from);
  for (const layer of layers) layer.forEach((node, i) => { node.place = i; });
  for (let sweep = 0; sweep < 4; ++sweep)
    for (const layer of layers) {
      for (const node of layer) {
        const places = before.get(node).map(other => other.place);
        node.wanted = places.length ? places.reduce((a, b) => a + b) / places.length : node.place;
      }
      layer.sort((a, b) => a.wanted - b.wanted).forEach((node, i) => { node.place = i; });
    }
  return layers;
}
const nodeWidth = 190, nodeHeight = 46, gapX = 24, gapY = 40;
function drawGraph(step, pattern) {
  const graph = graphOf(step), layers = layOut(graph), host = clear(element('graph-view'));
  const widest = Math.max(1, ...layers.map(layer => layer.length));
  const width = widest * (nodeWidth + gapX) + gapX, height = layers.length * (nodeHeight + gapY) + gapY;
  const svg = draw('svg', {width, height, viewBox: `0 0 ${width} ${height}`, role: 'group', 'aria-label': 'Graph of step ' + step});
  for (const layer of layers) {
    const left = (width - layer.length * (nodeWidth + gapX) + gapX) / 2;
    layer.forEach((node, i) => { node.x = left + i * (nodeWidth + gapX); node.y = gapY / 2 + node.layer * (nodeHeight + gapY); });
  }
  for (const {from, to, count} of graph.edges) {
    const x0 = from.x + nodeWidth / 2, y0 = from.y + nodeHeight, x1 = to.x + nodeWidth / 2, y1 = to.y;
    const path = draw('path', {d: `M${x0} ${y0}C${x0} ${y0 + gapY / 2} ${x1} ${y1 - gapY / 2} ${x1} ${y1}`, 'stroke-width': Math.min(4, 1 + Math.log10(count))});
    path.append(draw('title', {}, `${from.title} → ${to.title}, ${count} times`));
    svg.append(path);
  }
  const expression = pattern ? new RegExp(pattern, 'i') : null;
  let matches = 0;
  for (const node of graph.nodes) {
    const found = expression && (expression.test(node.title) || expression.test(run.location(node.first)) || [...node.inner].some(op => expression.test(op)));
    matches += found ? 1 : 0;
    const group = draw('g', {class: 'node' + (node.module ? ' module' : '') + (found ? ' found' : ''), tabindex: 0, role: 'button', transform: `translate(${node.x} ${node.y})`});
    group.append(draw('rect', {width: nodeWidth, height: nodeHeight}));
    group.append(draw('text', {x: 10, y: 19}, node.title.slice(0, 26) + (node.count > 1 ? `  ×${node.count}` : '')));
    const where = node.module ? `${node.inner.size} ops; click to unfold` : run.location(node.first).split('/').pop();
    group.append(draw('text', {x: 10, y: 36, class: 'small'}, where.slice(0, 30)));
    group.append(draw('title', {}, `${node.title}: ${node.count} times, ${timeText(node.time) || 'no time'}, ${run.location(node.first)}`));
    const open = () => {
      if (!node.module) return showOp(clear(element('graph-detail')), node.first);
      unfolded.add(node.module);
      showGraph();
    };
    group.addEventListener('click', open);
    group.addEventListener('keydown', event => { if (event.key === 'Enter') open(); });
    if (live && !node.module && node.kind === 1) live.addWatchBox(group, node, nodeWidth);
    svg.append(group);
  }
  host.append(svg);
  element('graph-count').textContent = `${graph.nodes.length} nodes, ${graph.edges.length} edges` + (expression ? `, ${matches} found` : '');
}
function showGraph() {
  const box = element('graph-search');
  try {
    drawGraph(Number(element('graph-step').value), box.value);
    box.setCustomValidity('');
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    box.setCustomValidity(error.message);
    box.reportValidity();
  }
}
addPanel('graph', 'Graph', panel => {
  const steps = [...new Set(run.step)];
  const search = make('input', {type: 'search', id: 'graph-search', placeholder: 'regular expression', 'aria-label': 'Nodes to mark, a regular expression'});
  search.addEventListener('input', showGraph);
  panel.append(make('div', {class: 'bar'}, make('label', {}, 'Step ', make('select', {id: 'graph-step', onchange: showGraph}, ...steps.map(step => make('option', {value: step}, String(step))))), search,
    make('button', {id: 'graph-fold', onclick: () => { unfolded.clear(); showGraph(); }}, 'fold all modules'),
    make('button', {id: 'graph-unfold', onclick: () => {
      for (let i = 0; i < run.count; ++i) {
        const parts = run.text('module', i).split('.');
        for (let n = 1; n <= parts.length; ++n) unfolded.add(parts.slice(0, n).join('.'));
      }
      showGraph();
    }}, 'unfold all'), make('span', {id: 'graph-count'})), make('div', {class: 'split wide-left'}, make('div', {class: 'graph', id: 'graph-view'}), make('div', {class: 'detail', id: 'graph-detail', tabindex: '0', 'aria-label': 'The chosen node'}, make('p', {}, 'A click on an op shows it here, with its source; one on a module unfolds it.'))));
  if (run.count) showGraph();
});
