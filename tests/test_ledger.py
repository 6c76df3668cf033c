"""The ledger: complete, in order, every verdict as recorded, every mutant red."""

import json
import re
import resource
import subprocess
import sys
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import goldens
import numpy as np
import pytest

from book import ledger
from book.chapters import verdicts as show
from book.cli import main
from book.ledger import Row, closed_forms, exact
from book.ledger.check import CHECKS, Case, Check, Refuted, check, claims, confirm
from labelaudit import bounds

ROWS = ledger.rows()
DECLARED = {row.id: row.declared for row in ROWS}
NOT_TRUE = {"false", "loose", "misprint", "gap", "answered"}
CHAPTERS = {path.stem for path in (Path(__file__).parents[1] / "notebooks").glob("[01]*.md")}


def test_all_statements_once_in_the_order_of_the_paper():
    assert ["machine", *DECLARED] == list(goldens.load("ledger"))
    assert len(ROWS) == len(DECLARED) == 153
    lines = [row.line for row in ROWS if row.id != "LA.2-minfrac"]  # derived from the next line
    assert lines == sorted(lines)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_row_has_its_verdict_its_evidence_and_red_mutants(row: Row):
    finding = row.run(quick=True)
    assert (finding["verdict"], finding["grade"]) == (row.declared, row.grade)
    assert goldens.differences("ledger", row.id, goldens.statement(finding)) == []
    assert finding["evidence"].strip() and finding["searched"].strip()
    assert finding["evidence"].isascii() and finding["searched"].isascii()
    assert not finding["evidence"].startswith("Not as the ledger's table has it")
    assert bool(finding["corrected"]) == (finding["verdict"] in NOT_TRUE)
    assert bool(row.proof) == (row.grade == "proved")
    assert row.chapter in CHAPTERS
    assert row.statement.strip()
    assert row.mutants or row.grade == "read"
    for mutant in row.mutants:
        try:
            verdict = row.run(quick=True, **mutant)["verdict"]
        except Refuted:
            verdict = "refuted"
        assert verdict != finding["verdict"], mutant


def test_what_is_read_is_not_true_and_every_check_has_a_row():
    read = [row.id for row in ROWS if row.grade == "read"]
    assert all(DECLARED[id] in {"misprint", "unchecked"} for id in read)
    assert sum(len(row.mutants) for row in ROWS) >= len(CHECKS)  # loads every module of checks
    assert set(CHECKS) <= set(DECLARED)
    assert {row.id for row in ROWS if row.id not in CHECKS} == {
        "S3-refs", "S4-bottom", "LA.2-triv", "LA.3-disp", "TA.9-k", "C-lr", "C-refs", "TD.2-ref"
    }  # fmt: skip


def test_a_result_that_is_not_as_the_table_has_it_shows_its_numbers():
    row = next(row for row in ROWS if row.id == "T3.2-sqrt")
    finding = row.run(quick=True, constant=0.9)
    assert finding["verdict"] == "false" and finding["corrected"] is None
    assert "at_k = 1" in finding["evidence"]


def test_one_statement_loads_one_module_of_checks():
    code = (
        "import sys\n"
        "from book.chapters.verdicts import verdicts\n"
        "assert verdicts('S4-nest').entries[0]['verdict'] == 'holds'\n"
        "names = [name.split('.') for name in sys.modules if 'book.ledger.' in name]\n"
        "loaded = {name[-1] for name in names}\n"
        "assert loaded == {'check', 'exact', 'section_4'}, loaded\n"
        "assert 'scipy' not in sys.modules and 'matplotlib' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_command_writes_the_ledger_as_json(tmp_path, capsys):
    file = tmp_path / "ledger.json"
    assert main(["ledger", "--only", "N-0.46", "--quick", "--json", str(file)]) == 0
    [entry] = json.loads(file.read_text(encoding="utf-8"))
    keys = "id line verdict grade rank slip evidence searched corrected proof"
    assert list(entry) == keys.split()
    assert entry["grade"] == "exact"
    assert (entry["id"], entry["line"], entry["verdict"]) == ("N-0.46", 388, "misprint")
    shown = capsys.readouterr().out
    assert "N-0.46" in shown
    assert shown.rstrip().endswith("1 statement: 1 misprint\ngrades: 1 exact")


def test_a_full_disk_leaves_the_ledger_of_an_earlier_run(tmp_path, capsys):
    file = tmp_path / "ledger.json"
    file.write_text("earlier")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50, limits[1]))
    try:
        status = main(["ledger", "--only", "N-0.46", "--quick", "--json", str(file)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert status == 1
    assert str(file) in capsys.readouterr().err
    assert file.read_text() == "earlier"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [(["--only", "T9.9"], "T9.9"), (["--json", "no/such/folder/x.json"], "no/such/folder/x.json")],
)
def test_command_refuses_in_one_line(arguments, named, capsys):
    assert main(["ledger", *arguments]) == 2
    refusal = capsys.readouterr().err
    assert named in refusal and refusal.count("\n") == 1


def test_command_names_what_is_not_installed(monkeypatch, capsys):
    for name in [name for name in sys.modules if name.startswith("book.ledger.section_2")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sympy", None)
    assert main(["ledger", "--quick"]) == 1
    captured = capsys.readouterr()
    assert "needs sympy," in captured.err and captured.err.count("\n") == 1
    assert captured.out == ""


def test_run_takes_one_id_several_or_refuses():
    several = ledger.run(only=["N-0.46", "S3-refs"], quick=True)
    assert [entry["id"] for entry in several] == ["S3-refs", "N-0.46"]
    with pytest.raises(ValueError, match="no statement 'T9'"):
        ledger.run(only="T9")
    assert "S3-refs" in ledger.as_block(several[0])
    assert "2 statements: 2 misprint" in ledger.as_totals(several)


@pytest.mark.parametrize(
    ("typed", "meant"), [("T3.2-sqr", "T3.2-sqrt"), ("la.4-GU2", "LA.4-gu2"), ("S3open", "S3-open")]
)
def test_command_suggests_the_nearest_statement(typed, meant, capsys):
    assert main(["ledger", "--only", typed]) == 2
    refusal = f"no statement {typed!r} in the ledger; did you mean {meant}?\n"
    assert capsys.readouterr().err.endswith(refusal)


def test_a_statement_has_one_check():
    ROWS[0].run(quick=True)
    with pytest.raises(ValueError, match="two checks"):
        check(ROWS[0].id)(lambda quick: iter(()))


def test_a_broken_check_names_its_row(monkeypatch):
    monkeypatch.setattr("book.ledger.CHECKS", {})
    monkeypatch.setattr("book.ledger.check.CHECKS", ledger.CHECKS)

    @check("X.1")
    def broken(quick: bool):
        confirm(False, "two is three")

    row = Row("X.1", 1, "section_2", "01_setting", "exact", "a statement", "evidence", "searched")
    with pytest.raises(Refuted, match=r"X\.1.*two is three"):
        ledger.entry(row, quick=True)


def test_a_check_without_cases_is_not_true():
    with pytest.raises(Refuted, match="has a case"):
        Check(lambda quick: iter(())).run()


def errata_sections() -> dict[str, str]:
    """The text of each section of the errata page, by the anchors that lead to it."""
    page = Path(__file__).parents[1] / "notebooks" / "errata.md"
    parts = re.split(r"^(?=\(errata-[\w-]+\)=\n#+ )", page.read_text("utf-8"), flags=re.MULTILINE)
    return {name: part for part in parts for name in re.findall(r"\(errata-([\w-]+)\)=", part)}


def quoted(text: str) -> set[str]:
    """The statements whose printed and corrected form the text takes from the ledger."""
    calls = re.findall(r"^erratum\((.*?)\)$", text, flags=re.MULTILINE)
    return {id for call in calls for id in re.findall(r'"([^"]+)"', call)}


@pytest.mark.parametrize("id", [id for id, verdict in DECLARED.items() if verdict == "false"])
def test_every_false_statement_has_a_cell_that_asserts_its_counterexample(id):
    section = errata_sections()[show.anchor(id)]
    badge = re.search(r"^### .*\{verdict\}`~(.*)`$", section, re.MULTILINE)
    assert badge and DECLARED[badge[1]] == "false"
    assert re.search(r"\{code-cell\}.*?^ *assert .*?^```", section, re.DOTALL | re.MULTILINE)
    assert id in quoted(section) and "**What depends on it.**" in section


def test_the_errata_list_what_does_not_hold_and_nothing_else():
    listed = set(errata_sections()) - {"misprints"}
    wrong = {id for id, verdict in DECLARED.items() if verdict in NOT_TRUE - {"misprint"}}
    assert listed == {show.anchor(id) for id in wrong}
    assert quoted("\n".join(errata_sections().values())) == wrong


def test_an_erratum_shows_the_line_the_printed_and_the_corrected_form():
    shown = show.erratum("T3.3", "S4-98")
    page = shown._repr_html_()
    assert "line 337" in page and "line 483" in page
    assert "<em>Closed by:</em>" in page and "<em>Corrected:</em>" in page
    assert "bags of at least 7 at p = 1/2" in page and "Printed" in page
    assert "corrected: It rules them out" in repr(shown)


def test_the_page_shows_every_entry_and_links_only_to_pages_that_exist():
    entries = ledger.run(only=["LA.3-CS", "N-0.46", "S3-refs", "PA.8"], quick=True)
    page = show.as_html(entries, {"06_proof_workshop", "errata"})
    assert re.findall(r'<tr id="([\w-]+)" data-verdict="(\w+)" data-grade="(\w+)"', page) == [
        (show.anchor(entry["id"]), entry["verdict"], entry["grade"]) for entry in entries
    ]
    assert set(re.findall(r'href="([^"]+)"', page)) == {
        "06_proof_workshop.html",
        "errata.html#errata-la-3-cs",
        "errata.html#errata-misprints",
    }
    assert "href" not in show.as_html(entries)
    assert page.count("<details") == 1 and "16 t<sup>2</sup>" in page  # the proof of PA.8
    assert "0.46" in show.misprints(entries) and "PA.8" not in show.misprints(entries)
    both = show.summary({"both": ["PA.8", "N-0.46"]}, entries)
    assert both.count('class="verdict') == both.count('class="grade') == 2


def test_no_result_that_holds_rests_on_search_alone():
    sure = {"proved", "certified", "exact"}
    holds = [row for row in ROWS if DECLARED[row.id] == "holds"]
    assert all(row.grade in sure for row in holds if row.rank == "result")
    assert sum(row.grade in sure for row in holds) >= 60
    results = re.compile(r"[TLP][A-D3]\.\d+$")
    assert all(row.rank == "result" for row in ROWS if results.match(row.id))


def test_false_rows_are_counted_as_distinct_slips():
    entries = [ledger.entry(row, quick=True) for row in ROWS if DECLARED[row.id] == "false"]
    results = [entry["id"] for entry in entries if entry["rank"] == "result"]
    assert results == ["T3.7", "LA.4", "PA.6", "LA.14"]
    assert {entry["slip"] for entry in entries} <= {entry["id"] for entry in entries}
    worst = {"result": 0, "step": 1, "text": 2}
    ranks = [
        min((entry["rank"] for entry in entries if entry["slip"] == slip), key=worst.get)
        for slip in {entry["slip"] for entry in entries}
    ]
    of_results, of_steps, of_text = (ranks.count(rank) for rank in worst)
    assert ledger.as_slips(entries) == (
        f"{len(ranks)} distinct slips in {len(entries)} rows: {of_results} in statements of"
        f" results, {of_steps} in steps of proofs, {of_text} in the text"
    )
    assert len(ranks) < len(entries) and min(of_results, of_steps, of_text) > 1


def test_what_a_proof_cites_exists():
    names = {claim["name"] for claim in claims()}
    folder = Path(__file__).parents[1] / "notebooks"
    workshop = (folder / "06_proof_workshop.md").read_text("utf-8")
    cited = set(re.findall(r"`([a-z0-9]+-[a-z0-9-]+)`", workshop)) & names
    for row in ROWS:
        text = row.proof or row.searched
        for number, label in re.findall(r"[Cc]hapter (\d+) \[([\w-]+)\]", text):
            [chapter] = folder.glob(f"{int(number):02d}_*.md")
            assert f":label: {label}\n" in chapter.read_text("utf-8"), (row.id, label)
        for part in re.findall(r"certificates? ((?:[a-z0-9-]+(?:, | and |))+)", text):
            listed = re.split(r", | and ", part.strip())
            hyphenated = {name for name in listed if "-" in name}
            assert hyphenated <= names, (row.id, hyphenated - names)
            assert names & set(listed), (row.id, part)
            cited |= names & set(listed)
    assert cited == names, names - cited
    assert {row.grade for row in ROWS if "certificate" in row.searched} == {"certified"}
    assert all("certificate" in row.searched for row in ROWS if row.grade == "certified")


def test_anchors_are_distinct():
    assert len({show.anchor(row.id) for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("size", range(1, 6))
@pytest.mark.parametrize("ratio", [Fraction(0), Fraction(1, 3), Fraction(9, 10)])
def test_geometric_rows_are_distributions_with_the_stated_ratio(size, ratio):
    rows = exact.geometric_count(size, ratio)
    assert all(sum(row) == 1 for row in rows)
    if ratio:
        pairs = [pair for two in pairwise(rows) for pair in zip(*two, strict=True)]
        assert max(max(a / b, b / a) for a, b in pairs) == 1 / ratio


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_closed_forms_agree_with_enumeration(size):
    low, high, weight = Fraction(1, 10), Fraction(3, 5), Fraction(3, 4)
    distribution = [(low, 1 - weight), (high, weight)]
    expected = exact.expected_advantage(distribution, exact.label_proportions, size)
    assert bounds.two_point_advantage(0.1, 0.6, 0.75, size)[2] == pytest.approx(float(expected))
    for p in (Fraction(1, 10), Fraction(1, 2), Fraction(4, 5)):
        enumerated = exact.additive_advantage([p] * size, exact.label_proportions, 0)
        assert exact.independent_advantage(p, size) == enumerated
        assert np.exp(closed_forms.log_independent_advantage(float(p), size)) == pytest.approx(
            float(enumerated)
        )
    bags = np.random.default_rng(size).random((3, size))
    enumerated = [
        float(exact.additive_advantage([Fraction(e) for e in bag], exact.label_proportions, 0))
        for bag in bags
    ]
    assert closed_forms.bag_advantage(bags) == pytest.approx(enumerated)


NAN = float("nan")


@pytest.mark.parametrize(
    "wrong",
    [
        Case(False),
        *(Case(ratio=ratio) for ratio in (1.01, Fraction(3, 2), NAN)),
        *(Case(slack=gaps, at="ab") for gaps in ([1, -0.1], [1.0, NAN], [NAN, -1.0])),
    ],
)
def test_one_wrong_case_is_enough(wrong):
    right = Case(True, ratio=1.0, slack=[0], at="a", size=3)
    truth, numbers = Check(lambda quick: iter([right, right])).run()
    assert truth and numbers["tried"] == 2 and numbers["size"] == 3
    assert not Check(lambda quick: iter([right, wrong, right])).run()[0]
