"""A document as one HTML file: its script and style are in it, it asks for nothing else and works without a network.

The data stands in a script element of type JSON, in which ``<`` is escaped, so that no text of a program can end it.
The page's policy lets no script run but those of the page, which are known by their digests, and the one that lays out
graphs: a worker, made from the text in the page, so that the page answers meanwhile.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html import escape
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heron import files
from heron.view.document import document

if TYPE_CHECKING:
    from heron.trace.record import Record

#: the page's scripts, each after those that it imports
SCRIPTS = (
    *("dom", "format", "words", "text", "list", "state", "hlo", "changes", "layout", "inspector"),
    *("overview", "timeline", "program", "graph_canvas", "graph", "kernels", "memory", "roofline", "decisions"),
    *("devices", "difference", "palette", "main"),
)

_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./(\w+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:const|function|class) (\w+))", re.MULTILINE)


def write(trace: Record, path: str | Path, before: Record | None = None) -> None:
    """Write the page of a trace, and how it differs from one `before`. Raises CLI012 when it cannot be written."""
    files.write_text(path, html(document(trace, before)))


def html(data: dict[str, Any]) -> str:
    """The page of a document."""
    code = script()
    texts = _static("third_party/codemirror.min.js")
    parts = {
        "TITLE": escape(f"{data['overview']['module']} · heron"),
        "DIGESTS": " ".join(map(_digest, (texts, code))),
        "STYLE": _static("style.css"),
        "DATA": embedded(data),
        "LAYOUT": _static("third_party/dagre.min.js") + _static("worker/layout.js"),
        "CODEMIRROR": texts,
        "SCRIPT": code,
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda m: parts[m.group(1)], _static("page.html"))


def _digest(code: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()}'"


def script() -> str:
    """The modules of the page in one script: each is a function that gives what it exports."""
    return "\n".join(["", "const modules = {};", *map(_module, SCRIPTS)])


def _module(name: str) -> str:
    text = _static(f"{name}.js")
    exported = ", ".join(_EXPORT.findall(text))
    body = _EXPORT.sub("", _IMPORT.sub(r"const \1 = modules.\2;", text))
    return f"modules.{name} = (() => {{\n{body}return {{ {exported} }};\n}})();\n"


def embedded(data: Any) -> str:
    """JSON that may stand inside a script element."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _static(name: str) -> str:
    return resources.files("heron.view").joinpath("static", name).read_text(encoding="utf-8")
