"""The style sheet of a report: light, dark and print, without fonts or images from elsewhere."""

STYLE = """
:root {
  color-scheme: light dark;
  --page: #ffffff; --ink: #1b2330; --soft: #556070; --line: #d7dde5; --panel: #f5f7fa;
  --good: #1c7a46; --note: #35618e; --warning: #9a5b00; --bad: #b3261e;
  --one: #2a6f97; --two: #d9822b; --three: #8e5ea2; --four: #5b8c3a; --mark: #b3261e;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #12161c; --ink: #e4e9f0; --soft: #9aa7b6; --line: #303a47; --panel: #1b222b;
    --good: #5ccb8b; --note: #8ab8e6; --warning: #f0b35a; --bad: #ff8a80;
    --one: #5fa8d3; --two: #f0a45d; --three: #c39ad6; --four: #9ccf77; --mark: #ff8a80;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif; }
main, header, footer { max-width: 1120px; margin: 0 auto; padding: 0 20px; }
header { padding-top: 18px; }
.what { color: var(--soft); margin: 0; }
h1 { font-size: 1.55rem; line-height: 1.25; margin: 6px 0 12px; padding: 10px 14px; background: var(--panel);
  border-left: 8px solid var(--note); border-radius: 4px; }
h1 .state { display: inline-block; font-size: .8rem; letter-spacing: .06em; vertical-align: middle; margin-right: 10px;
  padding: 2px 8px; border: 1.5px solid currentColor; border-radius: 3px; }
h1.good { border-color: var(--good); } h1.warning { border-color: var(--warning); } h1.bad { border-color: var(--bad); }
.good .state { color: var(--good); } .note .state { color: var(--note); }
.warning .state { color: var(--warning); } .bad .state { color: var(--bad); }
dl.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(140px, 1fr)); gap: 8px; margin: 0 0 12px; }
dl.cards div { background: var(--panel); border: 1px solid var(--line); border-radius: 4px; padding: 6px 10px; }
dt { color: var(--soft); font-size: .8rem; } dd { margin: 0; font-size: 1.1rem; font-weight: 600; }
dd small { display: block; font-weight: 400; color: var(--soft); font-size: .78rem; }
ul.verdict { list-style: none; padding: 0; margin: 0 0 10px; }
ul.verdict li { white-space: pre-line; max-width: 110ch; padding: 2px 0 2px 24px; position: relative; }
ul.verdict li::before { position: absolute; left: 4px; font-weight: 700; }
li.good::before { content: "\\2713"; color: var(--good); } li.note::before { content: "\\2022"; color: var(--note); }
li.warning::before { content: "!"; color: var(--warning); } li.bad::before { content: "\\2717"; color: var(--bad); }
nav { border-top: 1px solid var(--line); border-bottom: 1px solid var(--line); padding: 6px 0; margin-bottom: 8px;
  display: flex; flex-wrap: wrap; gap: 2px 14px; }
nav a { white-space: nowrap; } a { color: var(--note); }
h2 { font-size: 1.2rem; margin: 26px 0 6px; } h3 { font-size: 1rem; margin: 16px 0 4px; }
p { margin: 6px 0; max-width: 78ch; } .soft { color: var(--soft); }
.scroll { overflow-x: auto; margin: 8px 0 12px; }
table { border-collapse: collapse; font-size: .9rem; min-width: 50%; }
caption { text-align: left; color: var(--soft); padding-bottom: 3px; }
th, td { text-align: left; padding: 3px 14px 3px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { font-weight: 600; white-space: nowrap; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
td.number { white-space: nowrap; } td { min-width: 4.5rem; } td.wide { min-width: 11rem; }
tr.here td { font-weight: 600; background: var(--panel); }
code { font: .88em ui-monospace, "Liberation Mono", Menlo, monospace; overflow-wrap: anywhere; background: var(--panel);
  padding: 0 3px; border-radius: 3px; }
figure { margin: 8px 0 12px; max-width: 860px; } figcaption { color: var(--soft); font-size: .88rem; }
figure { overflow-x: auto; } svg.chart { display: block; width: 100%; min-width: 580px; height: auto; }
svg .label { font: 11px system-ui, "Liberation Sans", sans-serif; fill: var(--soft); }
svg .mark-text { font: 600 11.5px system-ui, "Liberation Sans", sans-serif; fill: var(--mark); }
svg .grid { stroke: var(--line); stroke-width: 1; } svg .mark { stroke: var(--mark); stroke-width: 1.5; stroke-dasharray: 5 3; }
svg .series-0 { fill: var(--one); } svg .series-1 { fill: var(--two); } svg .series-2 { fill: var(--three); }
svg .series-3 { fill: var(--four); } svg .step-0 { fill: var(--soft); } svg .step-1 { fill: var(--line); }
footer { color: var(--soft); font-size: .85rem; padding-top: 16px; padding-bottom: 24px; }
@media print {
  @page { size: A4; margin: 14mm; }
  :root { --page: #fff; --ink: #000; --soft: #444; --line: #bbb; --panel: #f3f3f3; --good: #14592f; --note: #23405e;
    --warning: #7a4800; --bad: #8c1d18; --one: #2a6f97; --two: #d9822b; --three: #8e5ea2; --four: #5b8c3a; --mark: #8c1d18; }
  body { font-size: 10.5pt; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  main, header, footer { max-width: none; padding: 0; }
  nav { display: none; } svg.chart { min-width: 0; } .scroll { overflow: visible; } table { font-size: 8.5pt; }
  h2, h3 { break-after: avoid; } figure, tr, dl.cards div { break-inside: avoid; }
}
"""
