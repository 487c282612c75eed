// Lets a chart show a part of its range: dragging over it; or, where it has the focus, + and −, the arrow keys, and 0 for all.
// `plane`: the rectangle of the curves in a drawing of the given width; `shown()`: the range that is drawn; `change(range)`
// draws another one, null: all.
function makeZoomable(svg, plane, width, shown, change) {
  let from = null, box = null;
  const place = event => {
    const area = svg.getBoundingClientRect();
    return Math.min(1, Math.max(0, ((event.clientX - area.left) / area.width * width - plane.left) / (plane.right - plane.left)));
  };
  const zoom = (a, b) => {
    const [low, high] = shown();
    if (high > low) change([low + a * (high - low), low + b * (high - low)]);
  };
  const drop = () => {
    if (box) box.remove();
    from = box = null;
  };
  svg.setAttribute('tabindex', 0);
  svg.addEventListener('pointerdown', event => { if (event.button === 0) from = place(event); });
  svg.addEventListener('pointermove', event => {
    if (from === null) return;
    if (!box) {
      box = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
      for (const [name, value] of [['class', 'selection'], ['y', plane.top], ['height', plane.bottom - plane.top]]) box.setAttribute(name, value);
      svg.append(box);
    }
    const [a, b] = [from, place(event)].sort((x, y) => x - y);
    box.setAttribute('x', plane.left + a * (plane.right - plane.left));
    box.setAttribute('width', (b - a) * (plane.right - plane.left));
  });
  svg.addEventListener('pointerup', event => {
    if (from === null) return;
    const [a, b] = [from, place(event)].sort((x, y) => x - y);
    drop();
    if (b - a > 0.02) zoom(a, b);
  });
  for (const kind of ['pointerleave', 'pointercancel']) svg.addEventListener(kind, drop);
  svg.addEventListener('dblclick', () => change(null));
  svg.addEventListener('keydown', event => {
    const part = {'+': [0.25, 0.75], '=': [0.25, 0.75], '-': [-0.5, 1.5], ArrowLeft: [-0.25, 0.75], ArrowRight: [0.25, 1.25]}[event.key];
    if (part) zoom(...part);
    else if (event.key === '0' || event.key === 'Escape') change(null);
    else return;
    event.preventDefault();
  });
}
// A wanted range within all, of the same length if there is room; null if it is all.
function rangeWithin(wanted, low, high) {
  if (!wanted) return null;
  const length = wanted[1] - wanted[0];
  if (!(length < high - low)) return null;
  const from = Math.min(Math.max(wanted[0], low), high - length);
  return [from, from + length];
}
