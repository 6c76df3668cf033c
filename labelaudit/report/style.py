"""The style of the report's page: light and dark, wide and narrow, and on paper."""

STYLE = """
:root { color-scheme: light dark; --ink: #14181e; --ground: #ffffff; --pale: #f3f4f6;
  --rule: #c9ccd0; --soft: #48566b; --good: #00694d; --bad: #a8320a; --open: #7a5a00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8eb; --ground: #14181e; --pale: #222832;
  --rule: #48566b; --soft: #b6bcc4; --good: #4fd1a5; --bad: #ff9a6b; --open: #f0c552; } }
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: var(--ground); line-height: 1.55;
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; }
main { max-width: 72rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; overflow-wrap: anywhere; }
h2 { font-size: 1.3rem; margin: 2.4rem 0 0.6rem; }
section > p, header > p, dd { max-width: 46rem; }
.advice, .warning { border-left: 5px solid var(--good); background: var(--pale);
  padding: 0.2rem 1.2rem 0.6rem; border-radius: 0.3rem; margin: 1.2rem 0; }
.warning { border-color: var(--bad); }
.advice h2, .warning h2 { margin-top: 0.8rem; }
.advice li { margin: 0.5rem 0; }
.note, figcaption, caption { color: var(--soft); font-size: 0.9rem; text-align: left; }
.wide { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-size: 0.88rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.35rem 0.5rem; text-align: right; vertical-align: top;
  border-top: 1px solid var(--rule); }
th[scope="row"] { text-align: left; font-weight: 600; white-space: nowrap; }
thead th { border-top: 0; vertical-align: bottom; }
thead th:first-child { text-align: left; }
table.text td { text-align: left; }
td small { display: block; color: var(--soft); white-space: nowrap; }
td small.why { white-space: normal; min-width: 7rem; text-wrap: balance; }
.verdict { font-weight: 600; white-space: nowrap; }
.verdict.meets { color: var(--good); } .verdict.misses { color: var(--bad); }
.verdict.cannot { color: var(--open); }
figure { margin: 1rem 0; min-width: 0; }
figure .wide { margin: 0; }
figure svg { width: 100%; height: auto; background: #ffffff; border-radius: 0.3rem;
  display: block; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(17rem, 1fr)); gap: 1rem; }
.legend { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: 0.3rem 1.2rem; }
.swatch { display: inline-block; width: 1em; height: 1em; margin-right: 0.4em;
  vertical-align: -0.15em;
  print-color-adjust: exact; }
details summary { cursor: pointer; color: var(--soft); }
dt { font-weight: 600; } dd { margin: 0 0 0.7rem; }
@media (max-width: 600px) { main { padding: 0.6rem 0.8rem 3rem; } h1 { font-size: 1.5rem; }
  th[scope="row"] { white-space: normal; min-width: 8rem; } th, td { padding: 0.3rem 0.45rem; } }
@media print { :root { --ink: #14181e; --ground: #ffffff; --pale: #f3f4f6; --rule: #c9ccd0;
  --soft: #48566b; --good: #00694d; --bad: #a8320a; --open: #7a5a00; }
  @page { margin: 12mm; }
  /* Folded lines are unfolded, and no column may run off the sheet. */
  details::details-content { content-visibility: visible; block-size: auto; }
  .wide { overflow: visible; } figure svg { min-width: 0 !important; }
  table { font-size: 0.68rem; } th, td { padding: 0.2rem 0.3rem; }
  th[scope="row"], td small { white-space: normal; } td small.why { min-width: 4.5rem; }
  figure, tr { break-inside: avoid; } h2 { break-after: avoid; } }
"""
