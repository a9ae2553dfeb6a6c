"""Makes the pictures of docs/use/view.md: ``python -m tests.view.pictures``.

Needs Chromium, and JAX for the program.
"""

from __future__ import annotations

import base64
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

from selenium.webdriver.chrome.webdriver import WebDriver

from tests.view.browser import chromium

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "use" / "view"
STEP = ROOT / "examples" / "mlp_step.py"

#: has the browser decode a picture and count its colours: the 128 commonest stay, each other one becomes its nearest
_QUANTISE = """
const [png, done] = arguments, image = new Image();
image.onload = () => {
  const canvas = new OffscreenCanvas(image.width, image.height), c = canvas.getContext("2d");
  c.drawImage(image, 0, 0);
  const { data } = c.getImageData(0, 0, image.width, image.height), counts = new Map();
  const key = n => (data[n] & 0xfc) << 16 | (data[n + 1] & 0xfc) << 8 | (data[n + 2] & 0xfc);
  for (let n = 0; n < data.length; n += 4) counts.set(key(n), (counts.get(key(n)) ?? 0) + 1);
  const kept = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 128).map(([k]) => [k >> 16, k >> 8 & 255, k & 255]);
  const far = (a, k) => (a[0] - (k >> 16)) ** 2 + (a[1] - (k >> 8 & 255)) ** 2 + (a[2] - (k & 255)) ** 2;
  const nearest = new Map();
  for (const k of counts.keys()) nearest.set(k, kept.reduce((best, a, n) => far(a, k) < far(kept[best], k) ? n : best, 0));
  let pixels = "";
  for (let n = 0; n < data.length; n += 4) pixels += String.fromCharCode(nearest.get(key(n)));
  done([image.width, image.height, kept.flat().map(v => v + (v >> 6)), btoa(pixels)]);
};
image.src = "data:image/png;base64," + png;
"""

_OPEN_SMALL = "[...document.querySelectorAll('.bar button')].find(b => b.textContent === '{}').click()"

#: file, page, place, what is done there
PICTURES = (
    ("overview", "step", "#overview", ""),
    ("timeline", "step", "#timeline", ""),
    ("program", "step", "#program/gather-simplifier", ""),
    ("graph", "step", "#graph", _OPEN_SMALL.format("open all")),
    ("kernel", "step", "#kernels/KERNEL/emission/ptx", ""),
    ("difference", "diff", "#difference", ""),
    ("memory", "step", "#memory", "document.querySelector('header button:nth-last-of-type(2)').click()"),  # in the dark
)


def main() -> None:
    """Compile the programs, write their pages and photograph them."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, chromium(1180, 760) as browser:
        pages = {name: Path(folder) / f"{name}.html" for name in ("step", "diff")}
        step = f"{STEP}:step"
        _heron("view", step, "--target", "sm_90", "-o", str(pages["step"]))
        _heron("diff", step, step, "--target", "sm_90", "--with", "math=fast", "--view", str(pages["diff"]))
        for name, page, place, action in PICTURES:
            browser.get("about:blank")
            browser.get(pages[page].as_uri() + _resolved(browser, pages[page], place))
            time.sleep(1)
            if action:
                browser.execute_script(action)
                time.sleep(1)
            _save(browser, FOLDER / f"{name}.png")


def _resolved(browser: WebDriver, page: Path, place: str) -> str:
    """The place with the number of the first version that a pass made for the pass's name, and with a kernel's line."""
    browser.get(page.as_uri())
    data = "const d = JSON.parse(document.getElementById('data').textContent);"
    if place.startswith("#program/"):
        name = place.removeprefix("#program/")
        find = "return d.programs.versions.findIndex(v => v.pass >= 0 && d.timeline.passes[v.pass][0] === arguments[0])"
        return f"#program/{browser.execute_script(data + find, name)}"
    find = (
        "const line = k => k.steps[0]?.[1].lines.findIndex(l => l.includes(' tanh(')) ?? -1;"
        "const k = d.kernels.kernels.find(k => line(k) >= 0); return `${k.name}/hlo:${line(k) + 1}`;"
    )
    return place.replace("KERNEL", browser.execute_script(data + find)) if "KERNEL" in place else place


def _heron(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "heron", *arguments], cwd=ROOT, check=True)


def _save(browser: WebDriver, path: Path) -> None:
    """Write what the browser shows as a picture of 128 colours, which takes a fourth of the bytes."""
    shot = browser.get_screenshot_as_base64()
    browser.get("about:blank")
    width, height, palette, pixels = browser.execute_async_script(_QUANTISE, shot)
    rows = base64.b64decode(pixels)
    raw = b"".join(b"\0" + rows[n * width : (n + 1) * width] for n in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    chunks = [(b"IHDR", head), (b"PLTE", bytes(palette)), (b"IDAT", zlib.compress(raw, 9)), (b"IEND", b"")]
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*c) for c in chunks))
    print(path.relative_to(ROOT), path.stat().st_size)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


if __name__ == "__main__":
    main()
