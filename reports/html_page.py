"""The report as one self-contained HTML page, made of the Markdown that perfkit writes, and of nothing else.

Only the marks that the renderers use are known here: headings, tables, lists, folds, code, emphasis, places,
links into the page and to files beside it, figures. All other text is escaped, so whatever stands in a name
is shown and never obeyed: the worst that a wrong mark can do is to make a word bold. Figures and the script
that sorts tables stand inside the page, and it forbids the browser to load or run anything else.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from html import escape, unescape

from reports.html_script import SCRIPT
from reports.html_style import STYLE

INLINE = re.compile(
    r"\\(?P<literal>[!-/:-@\[-`{-~])"
    r"|(?P<fence>`+)(?P<code>.+?)(?<!`)(?P=fence)(?!`)"
    r"|\*\*(?P<bold>.+?)(?<!\\)\*\*"
    r"|\*(?P<italic>.+?)(?<!\\)\*"
    r"|\[(?P<text>[^\]]+)\]\((?P<target>#[\w-]+|[\w.%~-][\w./%~-]*)\)"
    r'|<a id="(?P<place>[a-z0-9-]+)"></a>'
    r"|(?P<line_break><br>)"
)
HEADING = re.compile(r"(#{1,4}) (.*)")
IMAGE = re.compile(r"!\[(?P<alternative>.*)\]\((?P<path>[^)]+)\)(?:<br>)?")
SUMMARY = re.compile(r"<details><summary>(.*)</summary>")
CELLS = re.compile(r"(?<!\\)\|")
RULE = re.compile(r"\| ?[-:]")
SCRIPTS = re.compile(r"<script>(.*?)</script>", re.DOTALL)

LONG_WORD = re.compile(r"[^\s<>&;]{25,}")
WORD_ENDS = re.compile(r"(?<=[_/,=])(?=[^_/,=])|(?<=\.)(?=\w{5})|(?={)")
"""Where a long name in a cell may go on in the next line: else its table may be wider than the page."""

TEXT_CHARACTERS = 40
"""A column with a longer cell holds sentences: on a narrow screen it keeps a width to read them in."""

FigureText = Callable[[str], str]
"""The SVG text of the figure at a path of the Markdown; empty where none was drawn."""


def html_page(markdown: str, figure: FigureText) -> str:
    """The whole page; its title is the first heading."""
    first = next((m[2] for line in markdown.split("\n") if (m := HEADING.fullmatch(line))), "Findings")
    drawn: list[str] = []

    def kept(path: str) -> str:
        drawn.append(figure(path))
        return drawn[-1]

    body = "\n".join(_blocks(iter(markdown.split("\n")), kept))
    title = escape(_plain(first))
    allowed = _allowed([SCRIPT, *(script for svg in drawn for script in SCRIPTS.findall(svg))])
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{allowed}">\n<title>{title}</title>\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<style>{STYLE}</style>\n'
        f"</head>\n<body>\n<main>\n{body}\n</main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )


def _allowed(scripts: Iterable[str]) -> str:
    """A policy for the browser: nothing from outside, and no script but these."""
    hashes = dict.fromkeys(b64encode(sha256(script.encode()).digest()).decode() for script in scripts)
    named = " ".join(f"'sha256-{known}'" for known in hashes)
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src {named}"


def inline(text: str) -> str:
    """A line's Markdown as HTML."""
    parts, at = [], 0
    for found in INLINE.finditer(text):
        parts += [escape(text[at : found.start()]), _mark(found)]
        at = found.end()
    return "".join([*parts, escape(text[at:])])


def breakable(html: str) -> str:
    """The same HTML with places in long names where a line may end; its tags are left as they are."""
    parts = re.split(r"(<[^>]*>)", html)
    parts[::2] = [LONG_WORD.sub(lambda word: WORD_ENDS.sub("<wbr>", word[0]), text) for text in parts[::2]]
    return "".join(parts)


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
    return f'<a id="{found["place"]}"></a>' if found["place"] else "<br>"


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
    ruled = len(lines) > 1 and bool(RULE.match(lines[1]))
    heads, body = (rows[:1], rows[2:]) if ruled else ([], rows)
    right = [rule.endswith(":") for rule in rows[1]] if ruled else []
    sides = [_side(column, body, right) for column in range(max(map(len, rows)))]
    head = f"<thead>{_rows('th', ' scope=col', heads, sides)}</thead>" if heads else ""
    shown = f"<tbody>{_rows('td', '', body, sides)}</tbody>"
    return f'<div class="wide"><table>{head}{shown}</table></div>'


def _side(column: int, rows: list[list[str]], right: list[bool]) -> str:
    """The class of a column's cells: numbers at the right, sentences with room to read them."""
    if column < len(right) and right[column]:
        return ' class="r"'
    longest = max((len(_plain(row[column])) for row in rows if column < len(row)), default=0)
    return ' class="t"' if longest > TEXT_CHARACTERS else ""


def _rows(tag: str, scope: str, rows: list[list[str]], sides: list[str]) -> str:
    cells = (
        "".join(
            f"<{tag}{scope}{side}>{breakable(inline(cell))}</{tag}>"
            for cell, side in zip(row, sides, strict=False)
        )
        for row in rows
    )
    return "".join(f"<tr>{row}</tr>" for row in cells)


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
