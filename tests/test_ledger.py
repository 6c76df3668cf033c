"""The ledger: complete, in order, every verdict as recorded, every mutant red."""

import json
import re
import sys
from fractions import Fraction
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from labelaudit import ledger
from labelaudit.cli import main
from labelaudit.ledger import exact, html
from labelaudit.ledger.rows import Finding, Refuted, Row, Search, confirm, statement

QUICK = Search(quick=True)
ROWS = ledger.rows()
RECORDED = json.loads((Path(__file__).parent / "ledger_verdicts.json").read_text(encoding="utf-8"))
MUTANTS = [
    pytest.param(row, mutant, id=f"{row.id}-{number}")
    for row in ROWS
    for number, mutant in enumerate(row.mutants)
]
CHAPTERS = {
    "01_setting",
    "02_additive_advantage",
    "03_label_aggregation",
    "04_randomized_response",
    "05_multiplicative_advantage",
    "06_proof_workshop",
    "07_scatter_plots",
    "08_advantage_distributions",
    "09_learning",
    "10_higgs",
    "11_kdd12",
    "12_privacy_utility",
    "13_sharper_bounds",
    "14_audit",
}


@cache
def quick(id: str) -> Finding:
    return next(row for row in ROWS if row.id == id).run(QUICK)


def test_all_statements_once_in_the_order_of_the_paper():
    assert [row.id for row in ROWS] == list(RECORDED)
    assert len(ROWS) == 153


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_quick_verdict_is_the_recorded_one(row: Row):
    assert quick(row.id).verdict == RECORDED[row.id]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_a_finding_says_what_it_saw_and_where_it_looked(row: Row):
    found = quick(row.id)
    assert found.evidence.strip() and found.searched.strip()
    assert found.evidence.isascii() and found.searched.isascii()
    assert bool(found.mended) == (found.verdict in {"false", "misprint", "gap"})
    assert row.chapter in CHAPTERS
    assert row.statement.strip()


@pytest.mark.parametrize(("row", "mutant"), MUTANTS)
def test_mutant_is_red(row: Row, mutant):
    try:
        verdict = row.run(QUICK, **mutant).verdict
    except Refuted:
        verdict = "refuted"
    assert verdict != quick(row.id).verdict


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_a_check_that_computes_has_a_mutant(row: Row):
    found = quick(row.id)
    only_read = found.searched.startswith("read closely") or found.verdict == "unchecked"
    assert row.mutants or only_read


def test_command_writes_the_ledger_as_json(tmp_path, capsys):
    file = tmp_path / "ledger.json"
    assert main(["ledger", "--only", "N-0.46", "--quick", "--json", str(file)]) == 0
    [entry] = json.loads(file.read_text(encoding="utf-8"))
    assert list(entry) == ["id", "line", "verdict", "evidence", "searched", "mended"]
    assert (entry["id"], entry["line"], entry["verdict"]) == ("N-0.46", 388, "misprint")
    shown = capsys.readouterr().out
    assert "N-0.46" in shown and shown.rstrip().endswith("1 statement: 1 misprint")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [(["--only", "T9.9"], "T9.9"), (["--json", "no/such/folder/x.json"], "no/such/folder/x.json")],
)
def test_command_refuses_in_one_line(arguments, named, capsys):
    assert main(["ledger", *arguments]) == 2
    refusal = capsys.readouterr().err
    assert named in refusal and refusal.count("\n") == 1


def test_command_names_what_is_not_installed(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "sympy", None)
    assert main(["ledger", "--quick"]) == 2
    captured = capsys.readouterr()
    assert "need sympy," in captured.err and captured.err.count("\n") == 1
    assert captured.out == ""


def test_run_takes_one_id_several_or_refuses():
    several = ledger.run(only=["N-0.46", "S3-refs"], quick=True)
    assert [entry["id"] for entry in several] == ["S3-refs", "N-0.46"]
    with pytest.raises(ValueError, match="no statement 'T9'"):
        ledger.run(only="T9")
    table = ledger.as_table(several)
    assert "S3-refs" in table and "2 statements: 2 misprint" in table


@pytest.mark.parametrize(
    ("typed", "meant"), [("T3.2-sqr", "T3.2-sqrt"), ("la.4-GU2", "LA.4-gu2"), ("S3open", "S3-open")]
)
def test_command_suggests_the_nearest_statement(typed, meant, capsys):
    assert main(["ledger", "--only", typed]) == 2
    refusal = f"no statement {typed!r} in the ledger; did you mean {meant}?\n"
    assert capsys.readouterr().err.endswith(refusal)


def test_a_statement_cannot_be_registered_twice():
    with pytest.raises(ValueError, match="registered twice"):
        statement(ROWS[0].id, 1, "again", chapter="01_setting")(lambda search: None)


def test_a_broken_check_names_its_row():
    def check(search: Search) -> Finding:
        confirm(False, "two is three")
        raise AssertionError("not reached")

    row = Row("X.1", 1, "a statement", "01_setting", check, ())
    with pytest.raises(Refuted, match=r"X\.1.*two is three"):
        ledger.entry(row, QUICK)


def errata_sections() -> dict[str, str]:
    """The text of each section of the errata page, by the anchors that lead to it."""
    page = Path(__file__).parents[1] / "notebooks" / "errata.md"
    parts = re.split(r"^(?=\(errata-[\w-]+\)=\n#+ )", page.read_text("utf-8"), flags=re.MULTILINE)
    return {name: part for part in parts for name in re.findall(r"\(errata-([\w-]+)\)=", part)}


@pytest.mark.parametrize("id", [id for id, verdict in RECORDED.items() if verdict == "false"])
def test_every_false_statement_has_a_cell_that_asserts_its_counterexample(id):
    section = errata_sections()[html.anchor(id)]
    assert "[false]{.verdict .verdict-false}" in section
    assert re.search(r"\{code-cell\}.*?^ *assert .*?^```", section, re.DOTALL | re.MULTILINE)
    assert "**Mended.**" in section and "**What depends on it.**" in section
    assert str(next(row.line for row in ROWS if row.id == id)) in section


def test_the_errata_list_what_does_not_hold_and_nothing_else():
    listed = set(errata_sections()) - {"misprints"}
    wrong = {id for id, verdict in RECORDED.items() if verdict in {"false", "gap"}}
    assert listed == {html.anchor(id) for id in wrong}


def test_the_page_shows_every_entry_and_links_only_to_pages_that_exist():
    entries = ledger.run(only=["LA.3-CS", "N-0.46", "S3-refs", "PA.8"], quick=True)
    page = html.as_html(entries, {"06_proof_workshop", "errata"})
    assert re.findall(r'<tr id="([\w-]+)" data-verdict="(\w+)"', page) == [
        (html.anchor(entry["id"]), entry["verdict"]) for entry in entries
    ]
    assert set(re.findall(r'href="([^"]+)"', page)) == {
        "06_proof_workshop.html",
        "errata.html#errata-la-3-cs",
        "errata.html#errata-misprints",
    }
    assert "href" not in html.as_html(entries)
    assert "0.46" in html.misprints(entries) and "PA.8" not in html.misprints(entries)
    assert html.summary({"both": ["PA.8", "N-0.46"]}, entries).count('class="verdict') == 2


def test_badges_of_the_workshop_agree_with_the_ledger_and_are_backed_by_it():
    page = (Path(__file__).parents[1] / "notebooks" / "06_proof_workshop.md").read_text("utf-8")
    badges = re.findall(r"\[(\S+)\s+(\w+)\]\{\.verdict\s+\.verdict-(\w+)\}", page)
    assert len(badges) == page.count("{.verdict") > 15
    assert all(word == colour == RECORDED[id] for id, word, colour in badges)
    calls = re.findall(r"^verdicts\((.*?)\)$", page, re.DOTALL | re.MULTILINE)
    assert {id for id, _, _ in badges} <= set(re.findall(r'"([^"]+)"', "".join(calls)))


def test_anchors_are_distinct():
    assert len({html.anchor(row.id) for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("size", range(1, 6))
@pytest.mark.parametrize("ratio", [Fraction(0), Fraction(1, 3), Fraction(9, 10)])
def test_geometric_rows_are_laws_with_the_stated_ratio(size, ratio):
    rows = exact.geometric_count(size, ratio)
    assert all(sum(row) == 1 for row in rows)
    if ratio:
        pairs = [pair for two in pairwise(rows) for pair in zip(*two, strict=True)]
        assert max(max(a / b, b / a) for a, b in pairs) == 1 / ratio


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_closed_forms_agree_with_enumeration(size):
    low, high, weight = Fraction(1, 10), Fraction(3, 5), Fraction(3, 4)
    law = [(low, 1 - weight), (high, weight)]
    expected = exact.expected_advantage(law, exact.label_proportions, size)
    assert exact.two_point_advantage(0.1, 0.6, 0.75, size)[2] == pytest.approx(float(expected))
    for p in (Fraction(1, 10), Fraction(1, 2), Fraction(4, 5)):
        enumerated = exact.additive_advantage([p] * size, exact.label_proportions, 0)
        assert exact.independent_advantage_fraction(p, size) == enumerated
        assert np.exp(exact.log_independent_advantage(float(p), size)) == pytest.approx(
            float(enumerated)
        )
    bags = np.random.default_rng(size).random((3, size))
    enumerated = [
        float(exact.additive_advantage([Fraction(e) for e in bag], exact.label_proportions, 0))
        for bag in bags
    ]
    assert exact.bag_advantage(bags) == pytest.approx(enumerated)
