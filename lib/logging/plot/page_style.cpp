#include "page_parts.h"

namespace reel::logging {

const std::string_view page_style = R"(
:root {
  color-scheme: light dark;
  --ground: #fbfbfa; --card: #ffffff; --ink: #1d1f21; --faint: #666a70; --line: #e3e4e6; --cell: #0b4f87;
  --c0: #0072b2; --c1: #d55e00; --c2: #00875f; --c3: #b0568b; --c4: #2d9bd8; --c5: #b07900; --c6: #5a5a5a;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #17191c; --card: #1f2226; --ink: #e7e8ea; --faint: #a2a7ae; --line: #363a40; --cell: #7cc4f5;
    --c0: #56a8e0; --c1: #f08a45; --c2: #3fc79a; --c3: #dd94bd; --c4: #86cdf5; --c5: #efb73e; --c6: #b5b8bd;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 15px/1.45 system-ui, "DejaVu Sans", sans-serif; }
header, main, footer { max-width: 1500px; margin: 0 auto; padding: 0 24px; }
h1 { font-size: 22px; margin: 24px 0 4px; }
h2 { font-size: 16px; margin: 28px 0 10px; }
p { margin: 4px 0; color: var(--faint); }
.runs, .controls { display: flex; flex-wrap: wrap; gap: 6px 20px; margin: 12px 0; padding: 0; list-style: none; }
.runs li, .controls label { display: flex; align-items: center; gap: 7px; }
.runs svg { width: 30px; height: 10px; }
.controls { position: sticky; top: 0; z-index: 1; background: var(--ground); padding: 10px 24px; margin: 0 auto;
  border-bottom: 1px solid var(--line); }
.controls[hidden] { display: none; }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 380px), 1fr)); gap: 14px; }
figure { position: relative; margin: 0; padding: 12px 12px 8px; background: var(--card); border: 1px solid var(--line);
  border-radius: 8px; min-width: 0; }
figcaption { font-weight: 600; overflow-wrap: anywhere; }
figcaption small { font-weight: 400; color: var(--faint); }
figure > svg { display: block; width: 100%; height: auto; }
svg text { font: 11px system-ui, "DejaVu Sans", sans-serif; fill: var(--faint); }
.axes path { stroke: var(--line); fill: none; }
.curves path { fill: none; stroke-width: 1.7; stroke-linejoin: round; }
.curves path.raw { opacity: 0.25; stroke-width: 1.2; }
.cells path { fill: var(--cell); }
.mark { text-anchor: middle; }
.c0 { stroke: var(--c0); } .c1 { stroke: var(--c1); } .c2 { stroke: var(--c2); } .c3 { stroke: var(--c3); }
.c4 { stroke: var(--c4); } .c5 { stroke: var(--c5); } .c6 { stroke: var(--c6); }
circle.c0 { fill: var(--c0); } circle.c1 { fill: var(--c1); } circle.c2 { fill: var(--c2); } circle.c3 { fill: var(--c3); }
circle.c4 { fill: var(--c4); } circle.c5 { fill: var(--c5); } circle.c6 { fill: var(--c6); }
text.mark { stroke: none; } text.c0 { fill: var(--c0); } text.c1 { fill: var(--c1); } text.c2 { fill: var(--c2); }
text.c3 { fill: var(--c3); } text.c4 { fill: var(--c4); } text.c5 { fill: var(--c5); } text.c6 { fill: var(--c6); }
.d1 { stroke-dasharray: 7 4; } .d2 { stroke-dasharray: 2 3; } .d3 { stroke-dasharray: 9 3 2 3; }
.selection { fill: var(--c0); opacity: 0.2; }
figure > svg:focus-visible { outline: 2px solid var(--c0); }
.cursor { stroke: var(--faint); stroke-dasharray: 3 3; }
.tip { position: absolute; z-index: 2; pointer-events: none; background: var(--card); border: 1px solid var(--line);
  border-radius: 6px; padding: 6px 9px; font-size: 12.5px; box-shadow: 0 3px 12px #0004; white-space: nowrap; }
details { margin: 4px 0; font-size: 13px; color: var(--faint); }
summary { cursor: pointer; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { padding: 3px 14px 3px 0; text-align: left; border-bottom: 1px solid var(--line); }
td.number, th.number { text-align: right; }
.wide { overflow-x: auto; }
.pictures { display: flex; flex-wrap: wrap; gap: 10px; margin-top: 8px; }
.pictures div { font-size: 12.5px; color: var(--faint); max-width: 100%; }
.pictures img { display: block; max-width: 100%; height: auto; border-radius: 4px; }
.pictures img.small { min-width: 96px; image-rendering: pixelated; background: #888; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: 6px 0; font: 13.5px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; }
.warning { color: var(--c1); }
footer { padding-bottom: 40px; }
@media print { .controls { display: none; } figure { break-inside: avoid; } }
)";

}  // namespace reel::logging
