"""The audit command, its refusals, the two files it writes, and chapter 14."""

import importlib
import json
import math
import re
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import smoke
from audit_cases import MAJORITY, SECRET, run, some_rows, write_shop

import labelaudit as la
from book.chapters.exercises import check
from book.tools.parameters import ContractError
from labelaudit import auditing
from labelaudit.auditing import flow, table
from labelaudit.auditing.page import environment
from labelaudit.auditing.words import FOLDER
from labelaudit.mechanisms import kind_of
from labelaudit.mechanisms.custom import OPTIONS


@pytest.fixture
def csv(tmp_path):
    return write_shop(tmp_path)


def test_one_command_writes_a_page_and_every_number(csv, tmp_path, capsys):
    page = tmp_path / "report.html"
    quick = ["--mechanisms", "rr", "llp", "--bag-sizes", 4, "--epsilons", 1, "--refits", 2]
    assert run(csv, "--label", "bought", "--bag", "day", *quick, "--output", page) == 0
    printed = capsys.readouterr()
    assert "eta: model 10 of 10" in printed.err and str(page) in printed.out
    html = page.read_text()
    numbers = json.loads(page.with_suffix(".json").read_text(), parse_constant=pytest.fail)
    for text in (html, json.dumps(numbers)):
        assert SECRET not in text
    assert_self_contained(html)
    listed = [setting["setting"] for setting in numbers["settings"][:2]]
    assert listed == ["RR (epsilon 1)", "LLP (bags of 4)"]
    for setting in numbers["settings"]:
        assert f"{setting['realised']['value']:.4f}".lstrip("-") in html
    assert numbers["settings"][1]["epsilon"] == "inf"
    for advice in numbers["advice"]:
        assert {"setting", "verdict", "why", "own_bags"} <= set(advice)
        assert advice["verdict"] in (None, "meets")
    assert "releases looked ahead to" in html and "level of |I|" in html
    assert (numbers["data"]["label"], numbers["data"]["positive_value"]) == ("bought", "1")
    assert "<em>bought</em>" in html
    assert numbers["data"]["rows"] == 600 and numbers["bags"]["bags"] > 10
    assert [len(records) for records in numbers["most_exposed"].values()] == [10, 10]
    for title in ("What to publish", "By true label", "own bags", "knows more", "does not promise"):
        assert title in html
    assert not list(tmp_path.glob("*.partial"))


def test_the_same_seed_gives_the_same_numbers(csv):
    options = {"prior": "eta", "mechanisms": ["rr", "laplace"], "bag_sizes": [4], "seed": 5}
    audits = (la.audit(csv, "bought", **options) for _ in range(2))
    first, second = (json.loads(auditing.as_json(audit)) for audit in audits)
    for name in ("seconds", "made"):
        assert first.pop(name) is not None and second.pop(name) is not None
    assert first == second


BAD_ARGUMENTS = [
    (["--label", "sold"], "has no column 'sold'; it has 'x'"),
    (["--label", "day"], "must have 2 to 20 values, not"),
    (["--label", "one"], "must have 2 to 20 values, not 1"),
    (
        ["--label", "bought", "--features", "empty"],
        "'empty' cannot be used: every value is missing",
    ),
    (["--label", "bought", "--features", "same"], "'same' cannot be used: it is constant"),
    (["--label", "bought", "--features", "name"], "600 distinct texts name rows"),
    (["--label", "bought", "--prior", "x"], "the prior 'x' is missing in row"),
    (["--label", "bought", "--bag-sizes", "700"], "a bag size of 700 makes 0 bags of 600 rows"),
    (["--label", "bought", "--bag-sizes", "0"], "bag size must be a whole number"),
    (["--label", "bought", "--epsilons", "0"], "epsilon must be above 0"),
    (["--label", "bought", "--target", "privacy=1"], "a target is one of additive"),
    (["--label", "bought", "--target", "privacy"], "a target is one of additive"),
    (["--label", "bought", "--target", "additive"], "a target is written additive=NUMBER"),
    (["--label", "bought", "--target", "additive=0.7"], "must lie in [0, 0.5], not 0.7"),
    (["--label", "bought", "--mechanisms", "dp"], "a mechanism is one of rr, llp"),
    (["--label", "bought", "--utility", "forest"], "a utility model is one of none"),
    (["--label", "bought", "--refits", "1"], "refits must be a whole number of at least 2"),
    (["--label", "bought", "--target", "epsilon=inf"], "must be a finite number"),
    (["--label", "bought", "--prior", "eta", "--features", "x"], "--prior replaces --features"),
    (["--label", "bought", "--prior", "eta", "--utility", "logistic"], "logistic needs features"),
    (["--label", "bought", "--utility", "network"], "a utility model is one of none, logistic"),
    (["--label", "bought", "--learners", "network"], "a learner is one of boosting, logistic"),
    (["--label", "bought", "--repeats", "0"], "repeats must be a whole number"),
    (["--label", "bought", "--known", "-1"], "known must be a whole number"),
    (["--label", "rare"], "occurs 3 times in 600 rows"),
    (["--label", "bought", "--prior", "certain"], "the prior of row 8 is 0 and its label 1"),
    (["--label", "bought", "--bag", "same"], "the bag column has 1 different value; an interval"),
    (["--label", "bought", "--output", "nowhere/report.html"], "cannot write nowhere"),
    (["--label", "bought", "--output", "report.pdf"], "must be an .html file"),
]


@pytest.mark.parametrize("arguments, message", BAD_ARGUMENTS, ids=[m for _, m in BAD_ARGUMENTS])
def test_bad_input_is_one_line_before_any_training(
    arguments, message, tmp_path, monkeypatch, capsys
):
    frame = some_rows()
    frame["one"], frame["empty"], frame["same"] = 1, np.nan, 3
    frame["name"] = [f"person {number}" for number in range(600)]
    frame["rare"] = (np.arange(600) < 3).astype(int)
    frame["certain"], frame.loc[7, "certain"] = frame["bought"] * 1.0, 1 - frame["bought"][7]
    frame.to_csv(tmp_path / "shop.csv", index=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(flow, "trusted_eta", lambda *a: pytest.fail("training began"))
    assert run("shop.csv", *arguments) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if "reading" not in line]
    assert len(lines) == 1 and message in lines[0]


def test_a_bag_that_is_too_large_is_refused_before_any_training(tmp_path):
    frame = pd.DataFrame({"shop": np.r_[np.zeros(60_000), np.arange(1, 100)]})
    frame["bought"] = np.arange(len(frame)) % 2
    frame["eta"] = 0.5
    frame.to_csv(tmp_path / "large.csv", index=False)
    with pytest.raises(ValueError, match="has 60,000 records; an audit takes bags of at most"):
        flow.prepare(tmp_path / "large.csv", "bought", prior="eta", bag="shop")


def test_a_file_that_is_not_what_its_name_says(csv, tmp_path, capsys):
    wrong = tmp_path / "shop.parquet"
    wrong.write_bytes(csv.read_bytes())
    assert run(wrong, "--label", "bought", "--output", tmp_path / "r.html") == 2
    assert "is not a parquet file" in capsys.readouterr().err


def test_what_is_not_installed_is_named(csv, monkeypatch, capsys):
    from labelaudit.auditing import command

    monkeypatch.setattr(command, "find_spec", lambda name: None if name == "sklearn" else name)
    assert run(csv, "--label", "bought") == 2
    assert "needs scikit-learn: in a clone, pip install '.[audit]'" in capsys.readouterr().err


def test_what_draws_the_page_is_imported_when_it_is_made():
    code = "import sys, labelaudit.auditing.command, labelaudit.auditing; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert loaded.returncode == 0, loaded.stderr
    heavy = {"matplotlib", "jinja2", "pandas", "sklearn", "torch", "seaborn"}
    assert heavy.isdisjoint(loaded.stdout.split())


def test_an_audit_imports_neither_the_sweep_nor_torch(csv, tmp_path):
    code = "import sys; from labelaudit.cli import main; main(); print(*sys.modules)"
    options = ["--mechanisms", "rr", "--epsilons", "1", "--refits", "2", "--output", "r.html"]
    command = [sys.executable, "-c", code, "audit", str(csv), "--label", "bought", *options]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loaded = done.stdout.split()
    assert "labelaudit.auditing.flow" in loaded and "sklearn" in loaded
    assert not [name for name in loaded if name.startswith(("torch", "labelaudit.learning.sweep"))]


def test_a_table_is_read_once_and_a_users_file_runs_once(csv, tmp_path, monkeypatch):
    """With search, several settings, the table's own bags: and invalid options read nothing."""
    path, runs, reads = tmp_path / "majority.py", tmp_path / "runs", []
    path.write_text(f"open({str(runs)!r}, 'a').write('x')\n{MAJORITY}")
    read_frame = table.read_frame
    monkeypatch.setattr(table, "read_frame", lambda path: reads.append(path) or read_frame(path))
    for wrong in ({"epsilons": [-1]}, {"mechanisms": ["lpp"]}, {"target": "additive"},
                  {"learners": ["forest"]}, {"features": "x"}):  # fmt: skip
        with pytest.raises((ValueError, TypeError)):
            la.audit(csv, "bought", **wrong)
    assert reads == [] and not runs.exists()
    options = {"mechanisms": [str(path), "rr"], "bag_sizes": [3, 4], "epsilons": [0.5, 1.0]}
    la.audit(csv, "bought", prior="eta", bag="day", **options)
    assert len(reads) == 1 and runs.read_text() == "x"


@pytest.mark.parametrize("name", ["AuditPlan", "stream_priors", "Target", "expose"])
def test_old_names_can_be_imported_and_warn(name):
    with pytest.warns(DeprecationWarning, match=f"labelaudit.report.{name} is labelaudit.auditing"):
        assert callable(getattr(importlib.import_module("labelaudit.report"), name))


def test_a_table_is_read_by_its_old_name():
    with pytest.warns(DeprecationWarning, match="read_table is labelaudit.report.read_table"):
        read_table = importlib.import_module("labelaudit.datasets").read_table
    assert len(read_table(some_rows(50), label="bought", prior="eta")) == 50


def test_ready_made_priors_need_neither_a_learner_nor_the_book(csv, tmp_path):
    code = f"""
import sys

class Absent:
    def find_spec(self, name, *rest):
        if name in ("sklearn", "torch", "seaborn", "IPython", "nbformat"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent())
from labelaudit.cli import main
sys.exit(main(["audit", {str(csv)!r}, *sys.argv[1:]]))
"""
    arguments = ["--label", "bought", "--prior", "eta", "--bag-sizes", "4", "--output", "r.html"]
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "r.json").is_file() and "No model was trained" in (
        tmp_path / "r.html"
    ).read_text()


@pytest.mark.parametrize("name", ["report.html", "report.json"])
def test_what_is_there_already_is_not_overwritten_unasked(name, csv, tmp_path, monkeypatch, capsys):
    (tmp_path / name).write_text("of yesterday")
    arguments = ["--label", "bought", "--prior", "eta", "--output", tmp_path / "report.html"]
    quick = ["--mechanisms", "rr", "--epsilons", 1, "--refits", 2]
    with monkeypatch.context() as patch:
        patch.setattr(flow, "trusted_eta", lambda *a: pytest.fail("work began"))
        assert run(csv, *arguments) == 2
    assert f"{name} is there already: name another page" in capsys.readouterr().err
    assert (tmp_path / name).read_text() == "of yesterday"
    assert run(csv, *arguments, *quick, "--overwrite") == 0
    assert (tmp_path / name).read_text() != "of yesterday"


def test_two_files_are_written_or_none(tmp_path):
    from labelaudit.auditing import report

    with pytest.raises(UnicodeEncodeError):
        report._write({tmp_path / "r.html": "whole", tmp_path / "r.json": "half \ud800"})
    assert not list(tmp_path.iterdir())


def test_an_interrupted_audit_leaves_nothing_behind(csv, tmp_path):
    call = "import sys; from labelaudit.cli import main; sys.exit(main())"
    arguments = ["audit", str(csv), "--label", "bought", "--refits", "200", "--output", "r.html"]
    audit = subprocess.Popen(
        [sys.executable, "-c", call, *arguments], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    for line in audit.stderr:
        if "eta: model 2 " in line:
            audit.send_signal(signal.SIGINT)
            break
    assert audit.stderr.read().splitlines()[-1] == "labelaudit: interrupted"
    assert audit.wait(60) == 130
    assert [path.name for path in tmp_path.iterdir()] == ["shop.csv"]


def test_mechanisms_and_their_colours_are_those_of_the_book(csv):
    assert list(OPTIONS) == ["rr", "llp", "geometric", "laplace"]
    values = {"bag_size": 2, "epsilon": 1.0}
    for kind in OPTIONS.values():
        made = kind.make(**{name: values[name] for name in kind.parameters})
        assert kind_of(made) is kind
    audit = la.audit(csv, "bought", prior="eta", bag_sizes=[2], epsilons=[1.0])
    page = auditing.as_html(audit)
    for kind in OPTIONS.values():
        assert kind.colour.lower() in page


HOSTILE = "<script>alert('$x$ & \"y\"')<b>"


def test_names_from_the_user_are_text_and_nothing_else(tmp_path):
    """In the file, its columns, values, ids and mechanisms: on the page, and in its figures."""
    from bs4 import BeautifulSoup

    path, channel = tmp_path / f"{HOSTILE}.csv", tmp_path / f"_{HOSTILE}.csv"
    frame = some_rows()
    frame["bought"] = np.where(frame["bought"] == 1, HOSTILE, "no")
    frame["who"] = [f"{HOSTILE}{row}" for row in range(len(frame))]
    frame = frame.rename(columns={"x": f"x{HOSTILE}", "bought": f"label{HOSTILE}"})
    frame.to_csv(path, index=False)
    np.savetxt(channel, [[0.8, 0.2], [0.3, 0.7]], delimiter=",")
    columns = {"positive": HOSTILE, "identifier": "who", "bag": "day"}
    options = {"mechanisms": ["rr", str(channel)], "epsilons": [4.0], "refits": 2}
    audit = la.audit(path, f"label{HOSTILE}", **columns, **options)
    page = BeautifulSoup(auditing.as_html(audit), "html.parser")
    assert not page.find_all("script") and len(page.find_all("b")) <= 2
    assert all(set(tag.attrs).isdisjoint({"onload", "onclick"}) for tag in page.find_all(True))
    text = page.get_text()
    for name in (path.name, f"x{HOSTILE}", f"label{HOSTILE}"):
        assert name in text
    assert re.search(re.escape(HOSTILE) + r"\d", text)
    drawn = " ".join(letters.get_text() for letters in page.find_all("text"))
    assert f"_{HOSTILE}" in drawn


def test_the_templates_mark_nothing_as_safe():
    """What a template prints is escaped; only the style sheet and the drawn figures are not."""
    templates = list(FOLDER.glob("*.j2"))
    assert len(templates) >= 3
    for template in templates:
        assert "safe" not in template.read_text() and "autoescape" not in template.read_text()
    assert environment().autoescape is True


def test_every_passage_is_used():
    text = (FOLDER / "sentences.txt.j2").read_text()
    callers = [*FOLDER.glob("*.py"), *FOLDER.glob("*.html.j2")]
    source = "".join(path.read_text() for path in callers)
    bodies = dict(re.findall(r"macro (\w+)\((.*?)endmacro", text, re.DOTALL))
    assert len(bodies) > 10
    # Called by the program, or by a passage that is; calls outside of passages count as well.
    outside = re.sub(r"macro \w+\(.*?endmacro", "", text, flags=re.DOTALL)
    used = set(re.findall(r'(?:paragraphs|sentence)\(\s*"(\w+)"', source))
    reached = {name for name in bodies if re.search(rf"\b{name}\(", outside)} | used
    for _ in bodies:
        called = " ".join(bodies.get(name, "") for name in reached)
        reached |= {name for name in bodies if re.search(rf"\b{name}\(", called)}
    assert bodies.keys() - reached == set()


def assert_self_contained(html):
    """A page asks for nothing: its only references are to parts of itself."""
    assert "<script" not in html and "src=" not in html and "@import" not in html
    assert "<link" not in html and "<image" not in html
    for reference in re.findall(r"""href=["']([^"']*)|url\(([^)]*)\)""", html):
        assert "".join(reference).startswith("#"), reference


@pytest.mark.parametrize(
    ("position", "described"),
    [(0, "estimated eta"), (1, "additive advantage"), (2, "ROC curve")],
)
def test_figures_are_described_light_and_readable_on_a_dark_page(shop_page, position, described):
    from bs4 import BeautifulSoup

    figures = BeautifulSoup(shop_page, "html.parser").find_all("svg")
    assert len(figures) == 3
    figure = figures[position]
    assert described in figure["aria-label"] and len(figure["aria-label"]) > 100
    assert figure["role"] == "img" and len(str(figure)) < 60_000
    # The first thing drawn is an opaque white ground of the whole figure.
    assert "fill: #ffffff" in figure.find("path")["style"]
    sizes = [float(size) for size in re.findall(r"font-size: ([\d.]+)px", str(figure))]
    width = float(figure["viewbox"].split()[2])
    least = float(re.search(r"min-width:(\d+)px", figure["style"]).group(1))
    # Letters on the page are at least 9 px high however narrow the screen.
    assert sizes and min(sizes) * least / width >= 9
    identifiers = re.findall(r' id="([^"]*)"', shop_page)
    assert len(identifiers) == len(set(identifiers))


@pytest.fixture(scope="module")
def shop_page(tmp_path_factory):
    shop = write_shop(tmp_path_factory.mktemp("shop"))
    return auditing.as_html(la.audit(shop, "bought", features=["x", "kind"], refits=2))


def test_a_page_is_light_and_asks_for_nothing(shop_page):
    assert_self_contained(shop_page)
    assert len(shop_page.encode()) < 250_000


# The chapter


def test_the_smallest_bag_is_checked_by_another_road():
    rng = np.random.default_rng(4)
    eta = rng.uniform(0.1, 0.3, 400)
    advantages = [
        la.additive_advantage(
            la.priors.Empirical(eta).partition(k, np.random.default_rng(9)), la.LabelProportions(k)
        ).mean()
        for k in range(1, 41)
    ]
    right = next(k for k, value in enumerate(advantages, 1) if value <= 0.03)
    assert 1 < right < 40
    reached = advantages[right - 1]
    assert check("ex-audit-bag", (right, reached), eta=eta, seed=9).right
    for wrong, hint in (
        ((right - 1, reached), "is the first"),
        ((right + 5, reached), "is the first"),
        ((right, 1.1 * reached), "the size that you found"),
        (None, "Give 2 numbers"),
        ((2.5, reached), "whole number"),
    ):
        assert hint in check("ex-audit-bag", wrong, eta=eta, seed=9).hint
    assert check("ex-audit-bag", None, eta=np.full(100, 0.5), seed=9).right


def test_the_chapter_runs_on_a_readers_own_table(csv):
    overrides = {"table": str(csv), "label": "bought", "bag": "day", "bag_sizes": (4,)}
    overrides |= {"features": ("x", "kind"), "target": "multiplicative", "target_value": 1.5}
    overrides |= {"mechanisms": ("rr", "llp"), "epsilons": (1.0,)}
    execution = smoke.executed("14_audit", **overrides)
    written = json.loads((execution.folder / "files" / "report.json").read_text())
    assert written["data"]["file"] == "shop.csv" and written["bags"]["bags"] > 10
    assert written["data"]["features"] == ["x", "kind"]
    assert written["plan"]["target"] == {"kind": "multiplicative", "value": 1.5, "level": 0.98}
    assert len(execution.facts["headlines"]) >= 3
    costs = pd.read_csv(execution.folder / "files" / "utility.csv")
    assert {"realised", "low", "high", "AUC low", "AUC high"} <= set(costs.columns)
    assert pd.read_csv(execution.folder / "files" / "histogram.csv")["records"].sum() == 600


def test_the_chapters_attackers_know_half_of_a_bag_and_then_half_of_the_rest():
    execution = smoke.executed("14_audit")
    knowing = smoke.table(execution, "knowing.csv").query("releases == 1")
    assert knowing["setting"].nunique() > 1
    for setting, cases in knowing.groupby("setting"):
        known = cases["members known"].tolist()
        size = known[-1] + 1
        assert setting.startswith("RR") or f"bags of {size}" in setting
        assert known == sorted({size - math.ceil(size / 2**step) for step in range(10)})
    numbers = smoke.glued(execution)
    of_bags = knowing[~knowing["setting"].str.startswith("RR")]
    largest = of_bags.loc[of_bags["setting"] == of_bags["setting"].iloc[0], "advantage"]
    assert f"{largest.iloc[0]:.4f} if no label is known" in numbers["audit-known"]
    assert f"{largest.iloc[-1]:.4f} if all others are" in numbers["audit-known"]


def test_what_a_release_is_worth_may_add_nothing_to_the_attackers_accuracy():
    """At prior eta, ones and so many zeros that they are as many are told apart from the rest."""
    numbers = smoke.glued(smoke.executed("14_audit"))
    assert numbers["audit-silent-worth"] == pytest.approx((1 / 2 - 0.05) / (1 - 0.05))
    assert numbers["audit-silent-advantage"] == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"label": "boght"}, "shop.csv has no column 'boght'"),
        ({"target": "additive", "target_value": 0.7}, "the additive target must lie in"),
        ({"bag_sizes": (600,)}, "a bag size of 600 makes 1 bag of 600 rows"),
    ],
)
def test_the_chapter_rejects_what_the_audit_would(csv, overrides, message):
    with pytest.raises(ContractError, match=f"^14_audit: .*{message}"):
        smoke.executed("14_audit", **{"table": str(csv), "label": "bought"} | overrides)
