"""Chapters under plain papermill: the door that everybody knows leads to the same numbers."""

import jupytext
import papermill
import pytest
from commands import ROOT
from goldens import equal
from smoke import DECLARED, executed, glued

from book.tools.runner import Execution

# In `make test` one chapter stands for all.
FAST = "04_randomized_response"


@pytest.mark.parametrize(
    "chapter",
    [name if name == FAST else pytest.param(name, marks=pytest.mark.slow) for name in DECLARED],
)
def test_plain_papermill_gives_the_numbers_of_the_book(chapter, tmp_path):
    source, run = tmp_path / "chapter.ipynb", tmp_path / "run.ipynb"
    jupytext.write(jupytext.read(ROOT / "notebooks" / f"{chapter}.md"), source)
    values = DECLARED[chapter].values("smoke")
    notebook = papermill.execute_notebook(source, run, values, cwd=tmp_path, progress_bar=False)
    tags = [tag for cell in notebook.cells for tag in cell.metadata.get("tags", [])]
    assert tags.count("injected-parameters") == (1 if values else 0)
    found = glued(Execution(chapter=DECLARED[chapter], folder=tmp_path, notebook=notebook))
    expected = glued(executed(chapter))
    assert found.keys() == expected.keys()
    different = [name for name in found if not equal(expected[name], found[name], 1e-6)]
    assert different == []
