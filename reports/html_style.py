"""How the HTML page looks: plain text at a readable width, tables that scroll where they are too wide."""

from __future__ import annotations

STYLE = """
body { font: 15px/1.5 system-ui, "DejaVu Sans", sans-serif; color: #222; background: #fff;
  max-width: 64rem; margin: 2rem auto; padding: 0 1.25rem; }
h1 { font-size: 1.5rem; line-height: 1.25; }
h2 { font-size: 1.25rem; margin-top: 2.25rem; border-bottom: 1px solid #d9d9d9; padding-bottom: .2rem; }
h3 { font-size: 1.1rem; margin-top: 1.75rem; }
h4 { font-size: 1rem; margin-top: 1.5rem; }
h1, h2, h3, h4, p, li { overflow-wrap: anywhere; }
code, pre { font: 13px/1.45 ui-monospace, "DejaVu Sans Mono", monospace; background: #f2f2f2; }
code { padding: .05em .25em; }
pre { padding: .6rem .8rem; overflow-x: auto; white-space: pre-wrap; }
.wide { overflow-x: auto; margin: .75rem 0; }
table { border-collapse: collapse; font-size: 14px; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid #d9d9d9; padding: .3rem .7rem .3rem 0; text-align: left;
  vertical-align: top; }
th { border-bottom-color: #767676; font-weight: 600; overflow-wrap: normal; }
td { min-width: 2.5rem; overflow-wrap: break-word; }
.r { text-align: right; white-space: nowrap; }
th.r { white-space: normal; }
figure { margin: 1rem 0 .25rem; }
figure > svg { width: 100%; height: auto; max-width: 864px; }
details { margin: 1rem 0; }
summary { cursor: pointer; font-weight: 600; }
a { color: #0072b2; }
ul { padding-left: 1.3rem; }
@media print { body { max-width: none; margin: 0; } details > summary { list-style: none; } }
"""
