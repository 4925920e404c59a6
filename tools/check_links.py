"""Check the links of the built pages: ``python -m tools.check_links docs/_build/html``.

Every link and every picture, script and style of a page has to lead to a file of the build, and what stands after ``#``
to an element of that file with this name. Nothing is fetched: addresses of other hosts are only counted, except that a
page must not load anything from them by itself. A place that there is twice, and search without an index, are faults
too.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Links that pages offer, and what they load by themselves.
OFFERED, LOADED = {("a", "href")}, {("img", "src"), ("script", "src"), ("link", "href"), ("iframe", "src")}
# Of `link` elements these are fetched when a page is shown; others are hints, such as where the next page is.
FETCHED = {"stylesheet", "icon", "preload"}


@dataclass
class Page(HTMLParser):
    """Links and ids of one page."""

    path: Path
    links: list[tuple[str, bool]] = field(default_factory=list)
    ids: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.feed(self.path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember ids, links and what is loaded."""
        given = {name: value for name, value in attrs if value is not None}
        if "id" in given:
            self.ids[given["id"]] += 1
        for name, value in given.items():
            if (tag, name) in OFFERED | LOADED and value:
                loaded = (tag, name) in LOADED and (tag != "link" or bool(FETCHED & set(given.get("rel", "").split())))
                self.links.append((value, loaded))


def built(folder: Path) -> list[Path]:
    """The pages of the last build: Sphinx leaves those of pages that are gone, but its search does not know them."""
    there = sorted(folder.rglob("*.html"))
    index = folder / "searchindex.js"
    names = re.search(r'"?docnames"?:\s*\[(.*?)\]', index.read_text(encoding="utf-8")) if index.exists() else None
    if names is None:
        return there
    known = {folder / f"{name}.html" for name in re.findall(r'"([^"]+)"', names.group(1))}
    return [path for path in there if path in known or path.stem in {"genindex", "search", "py-modindex"}]


def check(folder: Path) -> tuple[list[str], Counter[str]]:
    """Faults of the pages in a folder, and how many links of which kind there are."""
    pages = {path: Page(path) for path in built(folder)}
    faults, counts = [], Counter[str]()
    if not pages:
        return [f"there are no pages in {folder}"], counts
    for path, page in pages.items():
        name = path.relative_to(folder)
        for link, loaded in page.links:
            parts = urlsplit(link)
            if parts.scheme in {"data", "mailto", "javascript"}:
                continue
            if parts.scheme or parts.netloc:
                counts["other hosts"] += 1
                if loaded:
                    faults.append(f"{name}: loads {link}")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target = target / "index.html"
            counts["files"] += 1
            if not target.exists():
                faults.append(f"{name}: there is no {link}")
            elif parts.fragment and target in pages:
                counts["places"] += 1
                places = pages[target].ids[unquote(parts.fragment)]
                if places != 1:
                    faults.append(f"{name}: there {'is no place' if not places else f'are {places} places'} {link}")
    if not (folder / "searchindex.js").exists():
        faults.append("searchindex.js: the search has no index")
    counts["pages"] = len(pages)
    return faults, counts


def main() -> int:
    """Print faults; 1 where there are any."""
    parser = argparse.ArgumentParser(prog="python -m tools.check_links", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("docs/_build/html"))
    faults, counts = check(parser.parse_args().folder.resolve())
    sys.stderr.write("".join(f"{fault}\n" for fault in faults))
    told = ", ".join(f"{n} {what}" for what, n in sorted(counts.items()))
    sys.stdout.write(f"{told}: {len(faults)} faults\n")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
