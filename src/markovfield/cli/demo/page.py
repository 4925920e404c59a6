"""The page that the demo leaves behind: one file of HTML beside its pictures."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape

__all__ = ["Chapter", "Picture", "page"]


@dataclass(frozen=True)
class Picture:
    """A picture in the page's folder, and what it shows."""

    file: str
    caption: str


@dataclass(frozen=True)
class Chapter:
    """A chapter of the tour: words, the code that ran, facts that it found, pictures."""

    title: str
    lead: str
    code: str
    facts: list[tuple[str, str]] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)


_STYLE = """
:root { --ink: #1f2a36; --muted: #5d6a76; --line: #dde4ea; --blue: #2b6cb0; --paper: #f6f8fa; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); line-height: 1.55;
       font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
header, main, footer { max-width: 60rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 3.5rem; padding-bottom: 1rem; }
h1 { font-size: 2.2rem; margin: 0 0 .3rem; letter-spacing: -.02em; }
header p { color: var(--muted); margin: 0; font-size: 1.1rem; max-width: 44rem; }
section { background: white; border: 1px solid var(--line); border-radius: 12px;
          padding: 1.6rem 1.8rem; margin: 1.8rem 0; }
h2 { margin: 0 0 .4rem; font-size: 1.35rem; letter-spacing: -.01em; }
h2 span { color: var(--blue); margin-right: .5rem; }
section > p { margin: 0 0 1rem; max-width: 46rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .3rem 1.2rem; margin: 1rem 0; }
dt { color: var(--muted); }
dd { margin: 0; font-variant-numeric: tabular-nums; }
figure { margin: 1.4rem 0 0; text-align: center; }
figure img { max-width: 100%; height: auto; }
figcaption { color: var(--muted); font-size: .92rem; margin-top: .5rem; text-align: left; }
details { border: 1px solid var(--line); border-radius: 8px; margin-top: 1.2rem; background: var(--paper); }
summary { cursor: pointer; padding: .55rem .9rem; color: var(--blue); font-weight: 600; }
pre { margin: 0; padding: .2rem 1rem 1rem; overflow-x: auto; font-size: .86rem; line-height: 1.5;
      font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
footer { color: var(--muted); font-size: .92rem; padding-bottom: 3rem; }
@media (max-width: 36rem) {
  section { padding: 1.1rem; } dl { grid-template-columns: 1fr; gap: 0; } dd { margin-bottom: .5rem; }
}
"""


def _coloured(code: str) -> str:
    """Code with inline colours; pygments comes with rich."""
    from pygments import highlight  # type: ignore[import-untyped]
    from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]
    from pygments.lexers import PythonLexer  # type: ignore[import-untyped]

    return str(highlight(code, PythonLexer(), HtmlFormatter(nowrap=True, noclasses=True, style="friendly")))


def _chapter(number: int, chapter: Chapter) -> str:
    facts = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in chapter.facts)
    figures = "".join(
        f'<figure><img src="{escape(p.file, quote=True)}" alt="{escape(p.caption, quote=True)}">'
        f"<figcaption>{escape(p.caption)}</figcaption></figure>"
        for p in chapter.pictures
    )
    return (
        f"<section><h2><span>{number}</span>{escape(chapter.title)}</h2><p>{escape(chapter.lead)}</p>"
        f"<dl>{facts}</dl>{figures}"
        f"<details open><summary>The code</summary><pre>{_coloured(chapter.code)}</pre></details></section>"
    )


def page(chapters: list[Chapter], note: str) -> str:
    """The whole page.

    Examples
    --------
    >>> text = page([Chapter("Title", "Words.", "x = 1", [("answer", "42")], [Picture("a.png", "A")])], "Done.")
    >>> 'src="a.png"' in text and "<dd>42</dd>" in text
    True
    """
    body = "".join(_chapter(i, c) for i, c in enumerate(chapters, 1))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Markovfield: a tour</title><style>{_STYLE}</style></head><body>"
        "<header><h1>Markovfield</h1><p>Write a model down once; ask it questions; "
        "get an answer that says how far it can be trusted.</p></header>"
        f"<main>{body}</main><footer>{escape(note)}</footer></body></html>\n"
    )
