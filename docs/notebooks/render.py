"""Run first_answers.ipynb and take its picture, first_answers.png; the notebook is kept without outputs.

It needs Chromium, and nbconvert, nbclient, ipykernel, playwright and pillow beside `dalenius[frames,plot]`:

    python docs/notebooks/render.py /usr/bin/chromium
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbconvert import HTMLExporter
from PIL import Image
from playwright.sync_api import sync_playwright

HERE = Path(__file__).resolve().parent
NOTEBOOK, PICTURE = HERE / "first_answers.ipynb", HERE / "first_answers.png"
WIDTH, COLORS = 860, 64


def main(chromium: str) -> None:
    """Run, render and shrink."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(notebook, resources={"metadata": {"path": str(HERE.parent.parent)}}).execute()
    page, _ = HTMLExporter().from_notebook_node(notebook)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as browsers:
        source = Path(folder) / "notebook.html"
        source.write_text(page, encoding="utf-8")
        browser = browsers.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        view = browser.new_page(viewport={"width": WIDTH, "height": 800})
        view.goto(source.as_uri())
        view.screenshot(path=str(PICTURE), full_page=True)
        browser.close()
    with Image.open(PICTURE) as picture:
        picture.convert("RGB").quantize(COLORS).save(PICTURE, optimize=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
