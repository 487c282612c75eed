#include "page_parts.h"

namespace reel::debug {

const std::string_view report_style = R"CSS(
nav { display: flex; flex-wrap: wrap; gap: 4px; margin: 14px 0; border-bottom: 1px solid var(--line); }
nav button { border: 0; border-bottom: 3px solid transparent; background: none; color: var(--ink); font: inherit;
  padding: 7px 12px; cursor: pointer; }
nav button[aria-selected="true"] { border-color: var(--c0); font-weight: 600; }
button:focus-visible, input:focus-visible, select:focus-visible, [tabindex]:focus-visible { outline: 2px solid var(--c0); outline-offset: 1px; }
section[role="tabpanel"] { min-height: 60vh; }
.bar { display: flex; flex-wrap: wrap; gap: 10px 18px; align-items: center; margin: 8px 0; }
.bar input[type="search"] { width: min(420px, 90vw); }
input, select, .bar button { font: inherit; color: var(--ink); background: var(--card); border: 1px solid var(--line); border-radius: 5px; padding: 4px 8px; }
.split { display: grid; grid-template-columns: minmax(0, 11fr) minmax(0, 9fr); gap: 14px; }
.split.wide-left { grid-template-columns: minmax(0, 7fr) minmax(0, 4fr); }
@media (max-width: 900px) { .split, .split.wide-left { grid-template-columns: minmax(0, 1fr); } }
.list { height: 68vh; overflow: auto; background: var(--card); border: 1px solid var(--line); border-radius: 8px; position: relative; }
.list .rows { position: absolute; left: 0; right: 0; }
.row { display: grid; grid-template-columns: 76px minmax(90px, 2fr) minmax(80px, 2fr) minmax(60px, 2fr) minmax(90px, 3fr) 74px; gap: 8px;
  height: 22px; padding: 0 8px; font-size: 12.5px; line-height: 22px; white-space: nowrap; cursor: pointer; }
.row span { overflow: hidden; text-overflow: ellipsis; }
.row.here { background: color-mix(in srgb, var(--c0) 22%, transparent); }
.row.bad span:first-child, .bad { color: var(--c1); font-weight: 600; }
.row.faint { color: var(--faint); }
.detail { height: 68vh; overflow: auto; background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 4px 14px; font-size: 13px; }
.detail h3 { font-size: 14px; margin: 10px 0 4px; }
.detail pre, .source { font: 12.5px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; white-space: pre; overflow-x: auto; margin: 4px 0; }
.source .at { background: color-mix(in srgb, var(--c5) 30%, transparent); }
.source .made { color: var(--c2); }
a { color: var(--c0); }
.link { background: none; border: 0; color: var(--c0); cursor: pointer; font: inherit; padding: 0; text-align: left; text-decoration: underline; }
.facts td:first-child { color: var(--faint); }
.share { display: inline-block; height: 10px; background: var(--c0); border-radius: 2px; vertical-align: middle; }
.share.back { background: var(--c1); }
.graph { overflow: auto; max-height: 75vh; background: var(--card); border: 1px solid var(--line); border-radius: 8px; }
.graph rect { fill: var(--ground); stroke: var(--line); rx: 6; }
.graph g.node { cursor: pointer; }
.graph g.node.module rect { stroke: var(--c0); stroke-width: 1.6; }
.graph g.node.found rect { stroke: var(--c1); stroke-width: 2.4; }
.graph text { fill: var(--ink); font-size: 12px; }
.graph text.small { fill: var(--faint); font-size: 10.5px; }
.graph path { fill: none; stroke: var(--faint); opacity: 0.55; }
canvas { display: block; width: 100%; background: var(--card); border: 1px solid var(--line); border-radius: 8px; }
.heat-rows { display: flex; gap: 8px; }
.heat-rows canvas { min-width: 0; align-self: flex-start; }
.heat-names { flex: none; max-width: 220px; font-size: 11px; line-height: 14px; white-space: nowrap; text-align: right; }
.heat-names div { overflow: hidden; text-overflow: ellipsis; height: 14px; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 16px; font-size: 12.5px; margin: 6px 0; }
.legend i { display: inline-block; width: 12px; height: 12px; border-radius: 3px; margin-right: 5px; vertical-align: -2px; }
.bar input[type="number"] { width: 84px; }
.bar button:disabled { color: var(--faint); cursor: default; }
.state { font-size: 16px; color: var(--ink); margin: 10px 0; padding: 8px 12px; border-left: 4px solid var(--c2); background: var(--card); }
.state.stopped { border-color: var(--c1); }
.state.ended { border-color: var(--faint); }
.nodes { max-height: 34vh; overflow: auto; background: var(--card); border: 1px solid var(--line); border-radius: 8px; }
.nodes { margin-bottom: 14px; }
#compare-chart figure { max-width: 760px; margin-bottom: 6px; }
.values { font: 12px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; white-space: pre; overflow: auto; max-height: 220px; margin: 6px 0; }
.console { height: 34vh; overflow: auto; background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 8px 12px; margin: 0;
  font: 12.5px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; white-space: pre-wrap; }
.command { width: 100%; margin-top: 6px; font: 13px ui-monospace, "DejaVu Sans Mono", monospace; }
.graph text.watch { fill: var(--c0); font-size: 15px; cursor: pointer; }
)CSS";

}  // namespace reel::debug
