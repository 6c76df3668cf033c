"""A checkout of two small chapters, made anew in a temporary folder for the tests of the runner."""

import contextlib
import os
import shutil
from html import escape
from pathlib import Path

import yaml

PACKAGE = Path(__file__).resolve().parents[1] / "labelaudit"

CONFIG = {
    "title": "A small book",
    "only_build_toc_files": True,
    "execute": {"execute_notebooks": "off"},
    "parse": {"myst_enable_extensions": ["amsmath", "colon_fence", "dollarmath"]},
    "sphinx": {
        "extra_extensions": ["sphinx_proof", "sphinx_exercise", "book.tools.sphinx_extension"],
        "config": {"mathjax_path": "mathjax/tex-svg-full.js"},
    },
}
TOC = {
    "format": "jb-book",
    "root": "book/index",
    "parts": [
        {
            "numbered": True,
            "chapters": [{"file": "notebooks/01_coin"}, {"file": "notebooks/02_plain"}],
        }
    ],
}
CHAPTERS = {
    "01_coin": {
        "title": "A coin",
        "data": [],
        "seconds": {"smoke": 3, "laptop": 4, "paper": 600},
        "parameters": {
            "bag_sizes": {
                "type": "list of integer",
                "range": [1, 64],
                "meaning": "people per bag",
                "smoke": [2],
                "paper": [2, 4, 8],
            },
            "bias": {
                "type": "number",
                "range": [0, 1],
                "meaning": "chance of heads",
            },
            "law": {
                "type": "text",
                "choices": ["uniform", "beta-2-30"],
                "meaning": "law of the priors",
            },
            "fail": {
                "type": "boolean",
                "meaning": "whether the last cell raises",
            },
            "sleep": {
                "type": "number",
                "range": [0, 600],
                "meaning": "seconds to wait in a cell",
            },
            "seed": {
                "type": "integer",
                "range": [0, 1000],
                "meaning": "seed of the draws",
            },
        },
    },
    "02_plain": {
        "title": "Plain",
        "data": [],
        "seconds": {"smoke": 1, "laptop": 1, "paper": 1},
        "parameters": {},
    },
}
HEADER = """\
---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  name: python3
  display_name: Python 3
  language: python
---
"""
COIN = (
    HEADER
    + """
# A coin

We toss it and look at {numref}`fig-coin`.

```{code-cell} ipython3
:tags: [parameters]
bag_sizes = [2, 4]
bias = 0.5
law = "uniform"
fail = False
sleep = 0
seed = 1
```

```{code-cell} ipython3
import time

import numpy as np

from book.chapters import glue, headline

rng = np.random.default_rng(seed)
tosses = rng.random((len(bag_sizes), 100)) < bias
time.sleep(sleep)
headline("mean", tosses.mean(), "share of heads")
glue("law", law)
```

The share of heads is {glue:text}`mean:.3f` under the law {glue:text}`law`.

$$
\\bar y = \\frac{1}{k} \\sum_i y_i
$$

```{prf:theorem} Large numbers
:label: large-numbers
The share tends to the bias.
```

```{code-cell} ipython3
---
mystnb:
  figure:
    name: fig-coin
    caption: |
      Running share of heads, simulated. The final share is {glue:text}`mean:.2f`.
  image:
    alt: A line that settles near the bias as tosses accumulate.
---
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(4, 2))
axes.plot(np.cumsum(tosses[0]) / np.arange(1, 101))
plt.show()
```

```{code-cell} ipython3
:tags: [hide-input]
from pathlib import Path

Path("tosses.csv").write_text("\\n".join(str(int(toss)) for toss in tosses[0]))
if fail:
    raise RuntimeError("the coin is lost")
```
"""
)
PLAIN = (
    HEADER
    + """
# Plain

By {prf:ref}`large-numbers`, [all](../book/index.md) is well.

```{prf:definition} Sum
:label: sum
Two is one and one.
```

```{code-cell} ipython3
:tags: [parameters, remove-cell]
```

```{code-cell} ipython3
1 + 1
```
"""
)


def make_checkout(root: Path) -> Path:
    """Write the small book into a folder and give the folder back."""
    files = {
        "_config.yml": yaml.safe_dump(CONFIG),
        "_toc.yml": yaml.safe_dump(TOC, sort_keys=False),
        "requirements.lock": "numpy==2.4.6\n",
        "pyproject.toml": '[tool.labelaudit]\ninstall-from = "labelaudit"\n',
        "book/index.md": "# A small book\n\nIt has two chapters.\n",
        "notebooks/chapters.yml": yaml.safe_dump(CHAPTERS, sort_keys=False),
        "notebooks/01_coin.md": COIN,
        "notebooks/02_plain.md": PLAIN,
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    # A package of its own, so that a test may change it and nobody else does meanwhile.
    unwanted = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, root / "labelaudit", ignore=unwanted)
    return root


def text_for_pages(source: Path, output: Path, *, strict: bool, config: Path | None = None) -> Path:
    """Stand in for `jupyter_book` where Sphinx is not what is tested: a page is its staged text."""
    html = output / "_build" / "html"
    (output / "_build" / ".doctrees").mkdir(parents=True, exist_ok=True)
    staged = [*source.glob("book/*.md"), *source.glob("notebooks/*.ipynb")]
    sources = {path.relative_to(source): path for path in staged}
    if config is not None:
        values = yaml.safe_load(config.read_text(encoding="utf-8"))["sphinx"]["config"]
        own = Path(values.get("run_notebook", ""))
        sources |= {Path("notebooks", own.name): own} if own.suffix else {}
    for name, path in sources.items():
        page = html / name.with_suffix(".html")
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(escape(path.read_text(encoding="utf-8")), encoding="utf-8")
        if path.suffix == ".ipynb":
            download = html / "_sources" / name
            download.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, download)
    (html / "index.html").write_text("", encoding="utf-8")
    return html


def leave_out_sphinx() -> None:
    """Make pages of text in this process from now on; for the command in a process of its own."""
    from book.tools import page, site

    page.jupyter_book = site.jupyter_book = text_for_pages


@contextlib.contextmanager
def edited(path: Path, old: str, new: str):
    """Replace a piece of a file while a test looks at the consequences."""
    sound = path.read_text(encoding="utf-8")
    assert old in sound, f"{path.name} does not hold {old!r}"
    path.write_text(sound.replace(old, new), encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(sound, encoding="utf-8")


def kernels_below(checkout):
    """Command lines of living kernels whose working folder lies in the checkout."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            folder = os.readlink(process / "cwd")
            arguments = (process / "cmdline").read_text()
        except OSError:
            continue
        if folder.startswith(str(checkout.root)) and "ipykernel_launcher" in arguments:
            found.append(arguments)
    return found
