"""How the HTML page looks: plain text at a readable width, light and dark, on paper too.

What is too wide (tables, on a narrow screen figures) scrolls inside its own box, the page never does. Colours
are variables, which figures use as well (see `html_figures.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

from reports.figure_style import BLACK, FAINT, GREY, PALE
from reports.flame_style import DARK_INK, DARK_PAGE, WHITE

LIGHT: Mapping[str, str] = {
    **{"page": WHITE, "ink": BLACK, "line": PALE, "faint": FAINT},
    **{"mark": GREY, "link": "#00639c"},
}
DARK: Mapping[str, str] = {
    **{"page": DARK_PAGE, "ink": DARK_INK, "line": "#43474d", "faint": "#25282c"},
    **{"mark": "#9a9a9a", "link": "#7cc0f2"},
}
"""Colours by what they are for, on either page: `mark` for lines that are read, `line` for those between."""


def _variables(colours: Mapping[str, str]) -> str:
    return " ".join(f"--{name}: {colour};" for name, colour in colours.items())


STYLE = (
    f"""
:root {{ color-scheme: light dark; {_variables(LIGHT)} }}
@media screen and (prefers-color-scheme: dark) {{ :root {{ {_variables(DARK)} }} }}
"""
    + """
body { font: 15px/1.5 system-ui, "DejaVu Sans", sans-serif; color: var(--ink); background: var(--page);
  max-width: 64rem; margin: 2rem auto; padding: 0 1.25rem; }
h1 { font-size: 1.5rem; line-height: 1.25; }
h2 { font-size: 1.25rem; margin-top: 2.25rem; border-bottom: 1px solid var(--line); padding-bottom: .2rem; }
h3 { font-size: 1.1rem; margin-top: 1.75rem; }
h4 { font-size: 1rem; margin-top: 1.5rem; }
h1, h2, h3, h4, p, li, summary { overflow-wrap: anywhere; }
h1, h2, h3, h4 { text-wrap: balance; }
code, pre { font: 13px/1.45 ui-monospace, "DejaVu Sans Mono", monospace; background: var(--faint); }
code { padding: .05em .25em; }
pre { padding: .6rem .8rem; overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere; }
.wide { overflow-x: auto; margin: .75rem 0; }
table { border-collapse: collapse; font-size: 14px; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .9rem .3rem 0; text-align: left;
  vertical-align: top; }
th:last-child, td:last-child { padding-right: 0; }
th { border-bottom-color: var(--mark); font-weight: 600; vertical-align: bottom; }
td { min-width: 2.5rem; overflow-wrap: break-word; }
.t { min-width: 11rem; }
.r { text-align: right; white-space: nowrap; }
th.r { white-space: normal; }
th button { all: unset; position: relative; cursor: pointer; }
th button:hover { text-decoration: underline; }
th button:focus-visible, a:focus-visible, summary:focus-visible { outline: 2px solid var(--link);
  outline-offset: 2px; }
th button::after { position: absolute; left: 100%; bottom: .15em; padding-left: .1em; font-size: .7em; }
th[aria-sort="ascending"] button::after { content: "\\25b2"; }
th[aria-sort="descending"] button::after { content: "\\25bc"; }
figure { margin: 1rem 0 .25rem; overflow-x: auto; }
figure > svg { width: 100%; height: auto; max-width: 864px; }
.drawn * { stroke-linejoin: round; stroke-linecap: butt; }
details { margin: 1rem 0; }
summary { cursor: pointer; font-weight: 600; }
a { color: var(--link); }
ul { padding-left: 1.3rem; }
@media (max-width: 46rem) {
  body { margin: 1rem auto; padding: 0 1rem; }
  figure > svg.drawn { min-width: 40rem; }
}
@media print {
  body { max-width: none; margin: 0; padding: 0; font-size: 10pt; }
  a { color: inherit; }
  code, pre { background: none; }
  table { font-size: 8.5pt; }
  thead { display: table-header-group; }
  tr, figure, pre { break-inside: avoid; }
  h1, h2, h3, h4 { break-after: avoid; }
  .wide, figure { overflow: visible; }
  td { overflow-wrap: anywhere; }
  .r { white-space: normal; }
  .t { min-width: 8rem; }
  th button::after { display: none; }
  details > summary { list-style: none; }
  details::details-content { content-visibility: visible; block-size: auto; }
}
"""
)
