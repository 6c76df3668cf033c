"""Certificates: those that ship are verified, wrong and undecided ones are said to be so."""

import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import special, stats

from book.cli import main
from book.ledger import certify, verify
from book.ledger.check import claims

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "results" / "certificates.json"
TABLE = json.loads(KEPT.read_text(encoding="utf-8"))
CERTIFICATES = {item["name"]: item for item in TABLE}
VERIFIER = ROOT / "book" / "ledger" / "verify.py"


def test_the_verifier_is_short_and_needs_the_standard_library_only():
    text = VERIFIER.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 150  # as README and the page of the ledger say
    imported = {line.split()[1].split(".")[0] for line in text.splitlines() if "import " in line}
    assert imported & set(sys.stdlib_module_names) == imported - {"certificates"}


def test_every_claim_is_kept_as_it_stands_in_the_table():
    kept = [{k: v for k, v in item.items() if k != "trees"} for item in TABLE]
    assert kept == claims()
    assert len(CERTIFICATES) == len(TABLE) == 21  # no name hides another


@pytest.mark.parametrize("name", CERTIFICATES)
def test_a_kept_certificate_is_verified(name):
    assert set(verify.verify(CERTIFICATES[name])) == {"verified"}


QUARTIC = {**CERTIFICATES["root-of-four"], "trees": ["."]}
TAIL = CERTIFICATES["tail-rate"]


def script(path, content):
    path.write_text(content, encoding="utf-8")
    command = [sys.executable, "-I", "-S", VERIFIER, path]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_script_verifies_a_file_and_sees_a_wrong_one(tmp_path):
    for tree, status, shown in ((".", 0, "{'verified': 1}"), ("?", 1, "{'undecided': 1}")):
        run = script(tmp_path / "kept.json", json.dumps([{**QUARTIC, "trees": [tree]}]))
        assert (run.returncode, run.stdout) == (status, f"root-of-four: {shown}\n"), run.stderr


@pytest.mark.parametrize(
    "content",
    ["", "[]", json.dumps([{**QUARTIC, "positive": ["-1 * v"]}, QUARTIC])],
    ids=["empty file", "no certificate", "two of one name, the first wrong"],
)
def test_the_script_rejects_a_file_that_proves_nothing(tmp_path, content):
    run = script(tmp_path / "kept.json", content)
    assert run.returncode == 1 and run.stdout == "" and run.stderr


@pytest.mark.parametrize(
    ("certificate", "error"),
    [
        ({**QUARTIC, "positive": []}, ValueError),
        ({**QUARTIC, "interval": ["1", "0"]}, ValueError),
        ({**QUARTIC, "positive": ["0.1 * v"]}, ValueError),
        ({**QUARTIC, "positive": ["v * (1 / 3)"]}, TypeError),
        ({**TAIL, "positive": ["D(0.1)"]}, ValueError),
        ({**TAIL, "positive": ["pi - D(1 / 3)"]}, verify.FloatOperation),
        ({**TAIL, "positive": ["pi > 3"]}, ValueError),
        ({**TAIL, "positive": ["1 / (pi - pi)"]}, ArithmeticError),
    ],
)
def test_a_certificate_without_expressions_or_with_floats_is_rejected(certificate, error):
    with pytest.raises(error):
        verify.verify(certificate)


def test_a_certificate_over_no_whole_number_verifies_nothing():
    nothing = {**QUARTIC, "whole": {"k": [2, 1]}, "trees": []}
    assert verify.verify(nothing) == {}


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("root-of-four", "10 * v +", "9 * v +"),
        ("geometric-noise", "- 2)", "- 3)"),
        ("bag-root", "1.1255", "1.12"),
        ("bracket-small", "23", "2300000"),
        ("concentration", '"2.13"', '"2.12"'),
        ("tail-rate", '"5.8"', '"5.9"'),
        ("lemma-a3-small", "pi", "1"),
    ],
)
def test_a_wrong_claim_is_rejected(name, right, wrong):
    claim = CERTIFICATES[name]
    texts = [text.replace(right, wrong) for text in claim["positive"]]
    assert texts != claim["positive"]
    assert verify.verify({**claim, "positive": texts})["wrong"] > 0


def test_the_bound_for_independent_labels_is_tight_for_bags_of_one():
    claim = {**CERTIFICATES["independent-root"], "whole": {"k": [1, 3]}, "trees": ["."] * 3}
    less = [
        text.replace("k * v", "k * 99 * v").replace("-1 *", "-100 *") for text in claim["positive"]
    ]
    assert verify.verify({**claim, "positive": less}) == {"wrong": 1, "verified": 2}


def test_undecided_and_missing_parts_are_counted():
    claim = CERTIFICATES["root-of-four"]
    assert verify.verify({**claim, "trees": ["/.?"]}) == {"verified": 1, "undecided": 1}
    assert verify.verify({**claim, "trees": ["/."]}) == {"verified": 1, "missing": 1}
    with pytest.raises(ValueError, match="zip"):
        verify.verify({**claim, "trees": []})


CLASSES = "().__class__.__base__.__subclasses__()"
HOSTILE = [
    "open({path!r}, 'w')",
    "__import__('os').system('touch {path}')",
    f"[c for c in {CLASSES} if c.__name__ == '_wrap_close'][0]"
    ".__init__.__globals__['system']('touch {path}')",
    "D.from_float.__self__",
    "pi.__class__",
    "D",
    "g",
    "comb.__self__",
    "(lambda: 1)()",
    "[1][0]",
    "{{}}",
    "sum([1])",
    "sum(1 for s in ())",
    "sum(1 for s in range(3) if open({path!r}, 'w'))",
    "sum(1 for s in range(3) for j in range(3))",
    "D(value=1)",
    "D(*range(1))",
    "'a' * 3",
    "f'{{pi}}'",
    "(x := 1)",
    "v0.is_nan()",
    "v0.sqrt(context=None)",
    "1 if v0 else open({path!r}, 'w')",
    "v0 @ v0",
    "1 << 3",
]


@pytest.mark.parametrize("method", ["bernstein", "ends"])
@pytest.mark.parametrize("text", HOSTILE)
def test_no_python_of_a_hostile_certificate_is_run(tmp_path, method, text):
    path = tmp_path / "made-by-the-certificate"
    certificate = {**QUARTIC, "method": method, "positive": [text.format(path=str(path))]}
    with pytest.raises(ValueError, match="not allowed in a certificate"):
        verify.verify(certificate)
    run = script(tmp_path / "hostile.json", json.dumps([certificate]))
    assert run.returncode == 1 and "not allowed in a certificate" in run.stderr
    assert not path.exists()


def test_bernstein_coefficients_and_the_bessel_function():
    v = verify.Polynomial((Fraction(0), Fraction(1)))
    # Bernstein coefficients of (1 - v)^2 - c v are 1, -c/2 and -c; of (v - 1/3)^2 + c they are
    # 1/9 + c, c - 2/9 and 4/9 + c, so a positive polynomial may need to be cut
    assert ((1 - v) ** 2).nonnegative() and not ((1 - v) ** 2 + -1 * v).nonnegative()
    square = (v + Fraction(-1, 3)) ** 2
    assert (square + Fraction(2, 9)).nonnegative() and not (square + Fraction(1, 9)).nonnegative()
    for value in ("0", "0.79", "4"):
        close = pytest.approx(special.ive(0, float(value)), rel=1e-14)
        assert float(verify.bessel(verify.Decimal(value))) == close


def test_command_makes_what_is_kept(tmp_path, monkeypatch, capsys):
    pytest.importorskip("flint")
    monkeypatch.setattr(verify, "verify", lambda certificate: {"verified": 1})  # done above
    assert main(["ledger", "--certify", str(tmp_path / "made.json")]) == 0
    made = json.loads((tmp_path / "made.json").read_text(encoding="utf-8"))
    assert made == TABLE
    shown = capsys.readouterr().out
    assert shown.count("parts:") == len(made) and "undecided" not in shown


def test_command_says_what_it_cannot_decide(monkeypatch, capsys):
    pytest.importorskip("flint")
    false = {"name": "false", "interval": ["0", "1"], "whole": {}, "method": "bernstein"}
    sharp = {**false, "name": "sharp", "interval": ["0", "4"], "method": "ends"}
    texts = ["v + -2 * v**2"], ['D("0.9376")**2 - 4 * v1 * g(v0)**2']
    undecided = [{**false, "positive": texts[0]}, {**sharp, "positive": texts[1]}]
    monkeypatch.setattr(certify, "claims", lambda: undecided)
    monkeypatch.setattr(certify, "DEEPEST", 6)
    assert main(["ledger", "--certify"]) == 1
    assert capsys.readouterr().out.count("undecided") == 2


def test_command_refuses_before_it_starts(monkeypatch, capsys):
    assert main(["ledger", "--certify", "no/such/folder/x.json"]) == 2
    assert "no/such/folder" in capsys.readouterr().err
    assert main(["ledger", "--certify", "--only", "LA.4"]) == 2
    assert "leave out --only" in capsys.readouterr().err
    monkeypatch.setattr(certify, "find_spec", lambda name: None)
    assert main(["ledger", "--certify"]) == 2
    assert ".[certify]" in capsys.readouterr().err


@pytest.mark.parametrize("rate", [0.02, 0.3, 1.0, 2.7, 30.5, 1000.2])
def test_the_solutions_of_steins_equation_are_as_small_as_the_proofs_say(rate):
    """LA.12 and LA.13: |g| <= 1/sqrt(rate) and its steps are at most 1/rate, over all sets."""
    width = int(8 * rate**0.5) + 15  # beyond it the probabilities are rounded to zero
    j = np.arange(max(0, int(rate) - width), int(rate) + width)
    pmf, below, above = (
        f(j, rate) for f in (stats.poisson.pmf, stats.poisson.cdf, stats.poisson.sf)
    )
    # g for the set {0..i} has the largest value at i + 1; the step for {j} at j is the largest
    assert (below * above / (rate * pmf)).max() <= rate**-0.5
    steps = above[1:] / rate + below[:-1] * pmf[1:] / (rate * pmf[:-1])
    assert steps.max() <= 1 / rate + 1e-12
