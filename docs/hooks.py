"""What pages take from elsewhere: `{{ method options }}`, and files as `{{ file PATH }}`."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from raybo.methods.registry import METHODS, method_class, method_options

ROOT = Path(__file__).parents[1]


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Return a page with its places filled in; called by mkdocs for each page."""
    markdown = re.sub(r"\{\{ file (\S+) \}\}", lambda found: included(found[1]), markdown)
    return markdown.replace("{{ method options }}", options_of_all())


def included(path: str) -> str:
    """Return a file of the repository without links to the files beside it."""
    text = (ROOT / path).read_text(encoding="utf-8")
    return re.sub(r"\[([^\]]+)\]\((?!https?:|#)[^)]+\)", r"\1", text)


def options_of_all() -> str:
    """Return a table of options for each method and preset."""
    parts = []
    for name, presets in METHODS.items():
        for preset in presets:
            rows = options_of(name, preset)
            if rows:
                title = f"`{name}`" + ("" if preset == "default" else f', `preset="{preset}"`')
                lines = [f"| `{o}` | `{d!r}` | {meaning} |" for o, d, meaning in rows]
                head = ["| option | default | meaning |", "|---|---|---|"]
                parts.append("\n".join([f"### {title}", "", *head, *lines]))
    return "\n\n".join(parts)


def options_of(name: str, preset: str) -> list[tuple[str, Any, str]]:
    """Return option, default and meaning, which is the comment beside it in the code."""
    cls = method_class(name, preset)
    source = inspect.getsource(cls)
    rows = []
    for option, default in method_options(name, preset).items():
        found = re.search(rf"(?m)^    {option}: .*?  # (.*)$", source)
        rows.append((option, default, meaning(found[1], cls) if found else ""))
    return rows


def meaning(comment: str, cls: type[Any]) -> str:
    """Return a comment with the values of constants in place of their names."""
    module = sys.modules[cls.__module__]

    def value(found: re.Match[str]) -> str:
        constant = getattr(module, found[0], found[0])
        if isinstance(constant, Mapping | tuple):
            return ", ".join(f"`{key}`" for key in constant)
        return str(constant)

    return re.sub(r"\b[A-Z][A-Z_]{2,}\b", value, comment).replace("|", "\\|")
