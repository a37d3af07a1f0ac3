"""The report as one self-contained HTML page, made of the Markdown that perfkit writes, and of nothing else.

Only the marks that the renderers use are known here: headings, tables, lists, folds, code, emphasis, links
into the page, figures. All other text is escaped, so whatever stands in a name is shown and never obeyed: the
worst that a wrong mark can do is to make a word bold. Figures stand inside the page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html import escape, unescape

from reports.html_style import STYLE

INLINE = re.compile(
    r"\\(?P<literal>[!-/:-@\[-`{-~])"
    r"|(?P<fence>`+)(?P<code>.+?)(?<!`)(?P=fence)(?!`)"
    r"|\*\*(?P<bold>.+?)(?<!\\)\*\*"
    r"|\*(?P<italic>.+?)(?<!\\)\*"
    r"|\[(?P<text>[^\]]+)\]\((?P<target>#[\w-]+)\)"
    r"|(?P<line_break><br>)"
)
HEADING = re.compile(r"(#{1,4}) (.*)")
IMAGE = re.compile(r"!\[(?P<alternative>.*)\]\((?P<path>[^)]+)\)(?:<br>)?")
SUMMARY = re.compile(r"<details><summary>(.*)</summary>")
CELLS = re.compile(r"(?<!\\)\|")
RULE = re.compile(r"\| ?[-:]")

FigureText = Callable[[str], str]
"""The SVG text of the figure at a path of the Markdown; empty where none was drawn."""


def html_page(markdown: str, figure: FigureText) -> str:
    """The whole page; its title is the first heading."""
    first = next((m[2] for line in markdown.split("\n") if (m := HEADING.fullmatch(line))), "Findings")
    body = "\n".join(_blocks(iter(markdown.split("\n")), figure))
    title = escape(_plain(first))
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<style>{STYLE}</style>\n'
        f"</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def inline(text: str) -> str:
    """A line's Markdown as HTML."""
    parts, at = [], 0
    for found in INLINE.finditer(text):
        parts += [escape(text[at : found.start()]), _mark(found)]
        at = found.end()
    return "".join([*parts, escape(text[at:])])


def _mark(found: re.Match[str]) -> str:
    if found["literal"]:
        return escape(found["literal"])
    if found["code"]:
        shown = found["code"].replace("\\|", "|")
        padded = shown[:1] == shown[-1:] == " " and shown.strip()
        return f"<code>{escape(shown[1:-1] if padded else shown)}</code>"
    if found["bold"]:
        return f"<b>{inline(found['bold'])}</b>"
    if found["italic"]:
        return f"<i>{inline(found['italic'])}</i>"
    if found["target"]:
        return f'<a href="{escape(found["target"])}">{inline(found["text"])}</a>'
    return "<br>"


def _blocks(lines: Iterator[str], figure: FigureText) -> Iterator[str]:
    """One block a time; lists, tables and paragraphs take the lines that belong to them."""
    kept: list[str] = []
    for line in lines:
        alone = _alone(line, lines, figure)
        if kept and (alone or _kind(line) != _kind(kept[-1])):
            yield _close(kept)
            kept = []
        if alone:
            yield alone
        elif line:
            kept.append(line)
    if kept:
        yield _close(kept)


def _alone(line: str, lines: Iterator[str], figure: FigureText) -> str:
    """A line that is a block by itself, with the lines of code that it opens; empty for any other."""
    if line.startswith("```"):
        return f"<pre>{escape(_code(lines, line))}</pre>"
    if heading := HEADING.fullmatch(line):
        level, said = len(heading[1]), heading[2]
        return f'<h{level} id="{_anchor(said)}">{inline(said)}</h{level}>'
    if image := IMAGE.fullmatch(line):
        seen, drawn = escape(_plain(image["alternative"])), figure(image["path"])
        still = "" if "<script>" in drawn else ' role="img"'  # inside of an img nothing can be reached
        return f'<figure{still} aria-label="{seen}">{drawn}</figure>'
    if summary := SUMMARY.fullmatch(line):
        return f"<details><summary>{inline(summary[1])}</summary>"
    return line if line == "</details>" else ""


def _plain(text: str) -> str:
    """Markdown without marks."""
    return unescape(re.sub(r"<[^>]*>", "", inline(text)))


def _kind(line: str) -> str:
    return "list" if line.startswith("- ") else "table" if line.startswith("|") else "text" if line else ""


def _close(kept: list[str]) -> str:
    """Lines of one kind as their block."""
    match _kind(kept[0]):
        case "list":
            return f"<ul>{''.join(f'<li>{inline(line[2:])}</li>' for line in kept)}</ul>"
        case "table":
            return _table(kept)
        case _:
            return f"<p>{'<br>'.join(map(inline, kept))}</p>"


def _table(lines: list[str]) -> str:
    """A table; what its rule says of a column is how it is aligned."""
    rows = [[cell.strip() for cell in CELLS.split(line)[1:-1]] for line in lines]
    ruled = len(lines) > 1 and RULE.match(lines[1])
    right = [rule.endswith(":") for rule in rows[1]] if ruled else []
    made = []
    for number, row in enumerate(rows):
        if ruled and number == 1:
            continue
        tag = "th" if ruled and number == 0 else "td"
        sides = [*right, *[False] * len(row)]
        cells = (_cell(tag, cell, side) for cell, side in zip(row, sides, strict=False))
        made.append(f"<tr>{''.join(cells)}</tr>")
    return f'<div class="wide"><table>{"".join(made)}</table></div>'


def _cell(tag: str, text: str, right: bool) -> str:
    side = ' class="r"' if right else ""
    return f"<{tag}{side}>{inline(text)}</{tag}>"


def _code(lines: Iterator[str], opening: str) -> str:
    """What stands up to the fence that is as long as the opening one."""
    fence = opening[: len(opening) - len(opening.lstrip("`"))]
    inside: list[str] = []
    for line in lines:
        if line == fence:
            break
        inside.append(line)
    return "\n".join(inside)


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w-]", "", heading.lower().replace(" ", "-"))
