"""Self-checks that can fail, and copies for a class that run and give nothing away."""

import ast
import csv
import inspect
import itertools
import json
import math
import re
import subprocess
import sys
import tomllib
from copy import deepcopy
from dataclasses import replace
from functools import cache
from pathlib import Path

import jupytext
import nbformat
import numpy as np
import pandas as pd
import papermill
import pytest
from commands import ROOT, run_python
from IPython.core.inputtransformer2 import TransformerManager
from smoke import CHAPTERS, CHECKOUT, DECLARED, executed, exercises
from smoke import text as text_of

from book import cli
from book.chapters.exercises import Hint, all_exercises, check, judge, plain
from book.chapters.exercises.answers import Right, all_hints
from book.tools.class_copies import (
    draw_class,
    key_copy,
    own_parameters,
    records,
    student_copy,
)
from book.tools.class_list import file_name, read_list
from book.tools.kernel import START_SECONDS
from book.tools.markdown import (
    FORMULA,
    GLUED,
    PlainMarkdown,
    extras,
    for_jupyter,
    glued_values,
    install_code,
    macros,
)
from book.tools.references import references
from labelaudit.command_line import CommandError

EXERCISES = all_exercises()
CHECKS = {
    label: (chapter, name)
    for chapter in CHAPTERS
    for label, name in re.findall(r'check\(\s*"(ex-[\w-]+)",\s+(\w+)', text_of(chapter))
}


def source(chapter):
    return jupytext.read(CHECKOUT.source(chapter))


@cache
def copied(chapter):
    student = "seat-01"
    parameters = own_parameters(DECLARED[chapter], "smoke", student, 0)
    run = executed(chapter).notebook
    made = student_copy(run, parameters, student, "a title")
    return for_jupyter(made, CHECKOUT, glued_values(run))


@pytest.fixture
def no_runs(monkeypatch):
    """Let the book's own run stand for that of every student."""

    def run_class(checkout, chapter, owned, scale, report):
        return dict.fromkeys(owned, executed(chapter.id).notebook)

    monkeypatch.setattr("book.tools.class_copies.run_class", run_class)


def printed(notebook):
    """What the cells of a notebook show as text."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return "\n".join(output.get("data", {}).get("text/plain", "") for output in outputs)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_chapter_asks_for_something_to_compute(chapter):
    gated = re.findall(r"\{solution-start\} (\S+)", text_of(chapter))
    assert len(exercises(text_of(chapter))) >= 3 and len(gated) >= 3
    assert [label for label, (home, _) in CHECKS.items() if home == chapter] == gated


def test_checks_and_exercises_are_the_same_set():
    assert set(CHECKS) == set(EXERCISES)


def test_a_check_imports_the_exercises_of_its_chapter_only():
    code = (
        "import sys; from book.chapters.exercises import check;"
        "assert check('ex-setting-two', [0.2, 0.8], own_prior=0.2);"
        "print(sorted(name for name in sys.modules if '.exercises.' in name))"
    )
    folder = "book.chapters.exercises"
    assert ast.literal_eval(run_python(code).stdout) == [f"{folder}.answers", f"{folder}.attack"]


def checked_in(chapter):
    """The exercises of a chapter that it checks, with the name of each answer."""
    found = {label: name for label, (home, name) in CHECKS.items() if home == chapter}
    assert found, f"{chapter} checks no answer"
    return found


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_chapters_own_solutions_are_right(chapter):
    shown = printed(executed(chapter).notebook)
    for label in checked_in(chapter):
        assert f"{label}: right" in shown


def undefined_names(folder):
    """Names that the notebooks of a folder use and never bind, by notebook."""
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F821"]
    command += ["--output-format", "json", str(folder)]
    faults = subprocess.run(command, capture_output=True, text=True, check=False)
    names = [
        (Path(fault["filename"]).stem, re.search("`(.+)`", fault["message"])[1])
        for fault in json.loads(faults.stdout)
    ]
    return sorted(names)


def test_student_copies_use_no_name_of_a_solution(tmp_path):
    for chapter in CHAPTERS:
        nbformat.write(copied(chapter), tmp_path / f"{chapter}.ipynb")
    assert undefined_names(tmp_path) == []


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_text_of_a_copy_has_numbers_and_no_names_of_values(chapter):
    names = {match["name"] for match in GLUED.finditer(text_of(chapter))}
    shown = "\n".join(cell.source for cell in copied(chapter).cells if cell.cell_type == "markdown")
    assert names and [name for name in names if f"`{name}`" in shown] == []


def test_the_key_has_the_right_answers_of_each_student(tmp_path, no_runs):
    arguments = ["teach", "02_additive_advantage", "--seats", "2", "--out", str(tmp_path / "c")]
    assert cli.main(arguments) == 0
    answers = pd.read_csv(tmp_path / "c" / "answers.csv", index_col="student")
    assert answers.index.tolist() == ["seat-01", "seat-02"]
    assert json.loads(answers["ex-additive-coin"].iloc[0]) == pytest.approx([0.01, 0.01, 0.0019])


def test_a_copy_writes_into_a_folder_of_its_own(tmp_path, monkeypatch):
    cells = [cell.source for cell in copied("01_setting").cells if cell.cell_type == "code"]
    code = next(cell for cell in cells if "folder of its own" in cell)
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        exec(code, {})
        assert Path.cwd() == tmp_path / "seat-01-files"


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_student_copy_waits_for_every_answer(chapter):
    cells = [cell.source for cell in copied(chapter).cells if cell.cell_type == "code"]
    for name in checked_in(chapter).values():
        blank = cells.index(f"{name} = ...  # your answer")
        assert re.search(rf'check\(\s*"[\w-]+",\s+{name}\b', cells[blank + 1])


# One chapter of theory, one that trains, one with files of its own.
@pytest.mark.parametrize("chapter", ["02_additive_advantage", "17_training", "14_audit"])
def test_a_student_copy_runs_and_waits_for_answers(chapter, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = papermill.execute_notebook(
        deepcopy(copied(chapter)),
        None,
        kernel_name="python3",
        progress_bar=False,
        start_timeout=START_SECONDS,
        cwd=tmp_path,
    )
    shown = printed(ran)
    for label in checked_in(chapter):
        assert f"{label}: not answered yet" in shown


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_student_copy_contains_no_solution(chapter):
    original = text_of(chapter)
    block = r"^(`{3,})\{solution-start\}.*?\{solution-end\}|^(`{3,})\{solution\}.*?^\2$"
    solutions = [match[0] for match in re.finditer(block, original, re.MULTILINE | re.DOTALL)]
    outside = re.sub(block, "", original, flags=re.MULTILINE | re.DOTALL)
    lines = {line.strip() for solution in solutions for line in solution.splitlines()}
    telling = [line for line in lines if len(line) > 30 and line not in outside]
    assert len(solutions) >= 3 and len(telling) >= 3
    whole = "\n".join(cell.source for cell in copied(chapter).cells)
    plain = PlainMarkdown(macros(CHECKOUT))
    for line in telling:
        assert line not in whole and plain(line) not in whole, line


PARAMETERS = {
    "epsilon": 1.0,
    "own_epsilon": 2.5,
    "own_prior": 0.2,
    "own_probability": 0.2,
    "own_deviation": 0.01,
    "bag_size": 8,
    "means": {"uniform": 0.5},
    "level": 0.98,
    "eta": np.repeat([0.05, 0.4], [180, 20]),
    "seed": 0,
}
NAMES = ["exact", "root", "Lemma A.2", "Bessel", "gap", "plain", "uniform", "own", "mass"]
ODD = [
    *("a guess", "", b"x", None, True, [], {}, set(), object(), print, 1j, lambda: 1),
    *(-1, -1.0, 1.5, math.nan, math.inf, 10**9, 10**12, 10**400, 1e300, -1e300, 5e-324),
    *(np.zeros((7, 3)), np.zeros(0), np.array(["x"]), np.full(4, np.nan), [[1], [2, 3]]),
    *([10**12] * count for count in (1, 2, 3, 4)),
    *([-1e300] * count for count in (2, 3, 4, 8)),
    *({name: value for name in NAMES} for value in (10**12, -1, "x", math.nan, [], 1.5, {})),
]


def own(label, **others):
    """Parameters of some page, as far as the exercise depends on them."""
    names = inspect.signature(EXERCISES[label]).parameters
    return {name: (PARAMETERS | others)[name] for name in names}


@pytest.mark.parametrize("label", sorted(EXERCISES))
@pytest.mark.filterwarnings("error")
def test_a_check_refuses_what_is_no_answer(label):
    for nonsense in ODD:
        feedback = check(label, nonsense, **own(label))
        assert not feedback.right, nonsense
        assert feedback.hint.startswith("not yet. ") and 15 < len(feedback.hint) < 250
        assert "\n" not in repr(feedback)


def test_a_row_counts_in_brackets_of_its_own_and_as_a_column():
    for form in ([[0.2, 0.8]], [[0.2], [0.8]], (0.2, 0.8)):
        assert check("ex-setting-two", form, own_prior=0.2).right


def test_a_check_says_which_parameters_it_wants():
    wanted = "ex-setting-own: pass bag_size=bag_size, epsilon=epsilon, own_prior=own_prior"
    with pytest.raises(TypeError, match=wanted):
        check("ex-setting-own", [0.1, 0.2])
    with pytest.raises(TypeError, match="ex-setting-two: pass own_prior=own_prior"):
        check("ex-setting-two", [0.2, 0.8], epsilon=1.0)


@pytest.mark.parametrize(
    ("label", "right", "parameters"),
    [
        ("ex-setting-two", [0.2, 0.8], {}),
        ("ex-setting-own", [0.9**4, 0.1**4, 0.231969], {"own_prior": 0.1, "bag_size": 4}),
        ("ex-additive-coin", [0.09, 0.09, 0.09 * (1 - 0.49)], {"own_prior": 0.3}),
        ("ex-again-hand", [0, 1, 1, 1, 0, 1, 0.5, 0.5, 0.5, 0.5], {"own_prior": 0.3}),
        ("ex-again-limit", [8, 2.5442, 4], {"own_prior": 0.5}),
        ("ex-response-compute", [math.log(19), 0.05 - 1 / 362, 0.268941], {"own_prior": 0.05}),
        ("ex-response-half", [math.log(9), 0.8], {}),
        ("ex-multiplicative-compute", [295, 50e6 / 8 * (0.96**8 + 0.04**8)], {"own_prior": 0.04}),
        ("ex-workshop-variation", 2 * 0.4096, {}),
        ("ex-scatter-large", [215, (15 / 16) ** 215], {"own_prior": 1 / 16}),
        ("ex-distribution-size", {"uniform": 7, "own": 61, "mass": (15 / 16) ** 61},
         {"own_prior": 1 / 16}),
        ("ex-measure-compute", (0.04 + 0.25) / 0.7, {"own_prior": 0.3}),
        ("ex-higgs-mean", [0.2 * (0.5 - 0.075858), 0.1 - 0.075858], {}),
        ("ex-kdd-bayes", [0.336692, 0.003409], {}),
        ("ex-audit-program", [math.log(0.8 * 9 / 0.2 + 1), 0.0126], {}),
        ("ex-aggregation-spread", [35 / 256, 35 / 256], {"own_prior": 0.5}),
        ("ex-response-uniform", [0.09, 0.6], {}),
        ("ex-workshop-squares", [84 / 1024, math.sqrt(7 * 84) / 32], {"own_prior": 0.5}),
        ("ex-scatter-ends", [(1 + 1 / math.e) ** 7 / 256] * 2, {"own_prior": 0.5}),
        ("ex-distribution-quartile", math.log(4 / 3), {}),
        ("ex-training-score", [0.231059, -0.231059, 0.053388], {"own_prior": 0.5}),
        ("ex-sharper-average", [1 / 16, (1 - math.exp(-1.5)) / 6], {"own_prior": 0.5}),
        ("ex-kdd-thinned", [0.29, 3 / 73 - 0.01], {"own_epsilon": math.log(99)}),
        ("ex-audit-three", [3 * math.log(4), 0.396], {}),
        ("ex-additive-pair", [0.16, 0.8], {}),
        ("ex-again-twice", [1 / 8, 15 / 64], {"own_prior": 0.5}),
        ("ex-utility-paired", [0.01 * math.sqrt(0.08), 0.01 * math.sqrt(0.2)], {}),
        ("ex-measure-norms", [0.284847, 0.370842, 0.324551], {}),
    ],
)  # fmt: skip
def test_right_numbers_that_were_found_elsewhere(label, right, parameters):
    """Closed forms by hand; the last advantage is from the channel, by enumeration."""
    if label == "ex-audit-program":
        right = [right[0], EXERCISES[label](**own(label))[1].truth]
    assert check(label, right, **own(label, **parameters)).right


def legal_parameters(label):
    """Parameters over the whole range that a chapter allows, both ends included."""
    names = list(inspect.signature(EXERCISES[label]).parameters)
    legal = DECLARED[CHECKS[label][0]].parameters
    for fraction in (0.0, 0.017, 0.13, 0.29, 0.5, 0.71, 0.86, 1.0):
        values = {}
        for name in names:
            if name in legal and name not in ("seed", "eta"):
                low, high = legal[name].low, legal[name].high
                spread = low * (high / low) ** fraction
                values[name] = round(spread) if legal[name].kind == "integer" else spread
        yield own(label, **values)
        if {"epsilon", "bag_size"} & set(values):  # and against the direction of the others
            yield own(label, **values | {name: legal[name].high for name in values
                                         if name in ("epsilon", "bag_size")})  # fmt: skip
            yield own(label, **values | {name: legal[name].low for name in values
                                         if name in ("epsilon", "bag_size")})  # fmt: skip


def as_answer(wanted, changed=None, value=None):
    """The right answer, as a student would give it, with one number changed."""
    if isinstance(wanted, Right):
        return value if changed is not None else wanted.truth
    steps = wanted.items() if isinstance(wanted, dict) else enumerate(wanted)
    answer = {name: value if name == changed else right.truth for name, right in steps}
    return answer if isinstance(wanted, dict) else list(answer.values())


def steps_of(wanted):
    if isinstance(wanted, Right):
        return [(0, wanted)]
    return list(wanted.items() if isinstance(wanted, dict) else enumerate(wanted))


def nearly(truth):
    """Numbers that are not quite right."""
    if truth is None:
        return [2]
    if isinstance(truth, int):
        return [truth - 1, truth + 1, truth + 0.5]
    truth = np.asarray(truth)
    return [truth * 1.002, truth * 0.998, -truth] if truth.all() else [truth + 0.001]


def hint_for(label, answer, wanted):
    """The hint that an answer gets, or "" if it is right."""
    try:
        judge(label, answer, wanted)
    except Hint as hint:
        return str(hint)
    return ""


def hints_about(label, name):
    """The hint for a number of an answer, and those for its common mistakes."""
    hints = all_hints()[label]
    return hints[name] if isinstance(hints, list) else hints.get(name, [hints["any"]])


@pytest.mark.parametrize("label", sorted(EXERCISES))
def test_no_mistake_is_accepted_at_any_legal_parameter(label):
    for parameters in legal_parameters(label):
        wanted = EXERCISES[label](**parameters)
        assert hint_for(label, as_answer(wanted), wanted) == "", parameters
        for name, right in steps_of(wanted):
            _, *about = hints_about(label, name)
            for value in right.wrong:
                if value is not None:
                    given = hint_for(label, as_answer(wanted, name, value), wanted)
                    assert given.removeprefix(f"{name}: ") in about, (parameters, value)
            for value in nearly(right.truth):
                assert hint_for(label, as_answer(wanted, name, value), wanted), (parameters, value)


def test_every_hint_belongs_to_a_number_and_every_mistake_has_a_hint():
    assert list(all_hints().keys() ^ EXERCISES.keys()) == []
    for label in EXERCISES:
        rights = steps_of(EXERCISES[label](**own(label)))
        assert isinstance(all_hints()[label], dict) or len(all_hints()[label]) == len(rights)
        for name, right in rights:
            # Where no mistake is possible at these parameters the function may list none.
            assert len(right.wrong) in (0, len(hints_about(label, name)) - 1), (label, name)


def test_an_answer_that_is_rounded_too_much_is_told_so():
    rows = EXERCISES["ex-additive-untouched"](epsilon=1.0, own_prior=0.1)
    coarse = [rows[0].truth, np.full(4, 0.46)]
    assert "at least four digits" in hint_for("ex-additive-untouched", coarse, rows)
    assert check("ex-response-half", [2.197, 0.8], own_prior=0.2).right
    assert "at least four digits" in check("ex-response-half", [2.2, 0.8], own_prior=0.2).hint


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_thirty_students_share_no_answer(chapter):
    """In every computed exercise; data and seeds that a run makes are the book's own here."""
    seats = [own_parameters(DECLARED[chapter], "smoke", f"seat-{n:02}", 0) for n in range(1, 31)]
    for label, record in records(executed(chapter).notebook).items():
        used = inspect.signature(EXERCISES[label]).parameters
        right = [
            as_answer(
                EXERCISES[label](
                    **{name: seat.get(name, record["parameters"][name]) for name in used}
                )
            )
            for seat in seats
        ]
        answers = {json.dumps(plain(answer)) for answer in right}
        assert len(answers) == len(seats), label


def test_an_unknown_exercise_is_refused_by_name():
    with pytest.raises(ValueError, match=r"no exercise 'ex-seting-two'.*ex-setting-two"):
        check("ex-seting-two", 1)


def test_a_proof_is_for_the_teacher():
    feedback = check("ex-additive-nonnegative", "By Jensen's inequality.")
    assert not feedback and "this one is for your teacher" in feedback.hint


def test_parameters_are_a_students_own_and_lasting():
    chapter = DECLARED["02_additive_advantage"]
    seats = [own_parameters(chapter, "laptop", f"seat-{seat}", 0) for seat in range(30)]
    assert seats == [own_parameters(chapter, "laptop", f"seat-{seat}", 0) for seat in range(30)]
    assert len({(s["bag_size"], s["epsilon"], tuple(s["priors"])) for s in seats}) > 20
    assert own_parameters(chapter, "laptop", "seat-1", 1) != seats[1]
    for values in seats:
        assert chapter.resolve("laptop", values) == values


def test_a_copy_that_does_not_show_what_its_chapter_claims_is_drawn_again(monkeypatch):
    chapter = replace(DECLARED["02_additive_advantage"], claims=("rate < limit", "rate > 0.1"))
    draws = {
        str(own_parameters(chapter, "smoke", name, 0, draw)): (name, draw)
        for name in ("Ann", "Bo")
        for draw in range(20)
    }
    rates = {("Ann", 0): 0.3, ("Bo", 0): 0.9, ("Bo", 1): 0.05, ("Bo", 2): 0.2}

    def run_class(checkout, chapter, owned, scale, report):
        return {
            name: glued_notebook({"rate": rates.get(draws[str(values)], 1), "limit": 0.5})
            for name, values in owned.items()
        }

    monkeypatch.setattr("book.tools.class_copies.run_class", run_class)
    arguments = ["smoke", 0, lambda *words: None]
    owned, _ = draw_class(CHECKOUT, chapter, ["Ann", "Bo"], *arguments)
    assert [draws[str(owned[name])] for name in ("Ann", "Bo")] == [("Ann", 0), ("Bo", 2)]
    rates[("Bo", 2)] = 0.05
    with pytest.raises(CommandError, match="none of 20 draws for 'Bo' satisfies 'rate < limit'"):
        draw_class(CHECKOUT, chapter, ["Ann", "Bo"], *arguments)


def glued_notebook(values):
    """A notebook that has glued these values."""
    cell = nbformat.v4.new_code_cell()
    for name, value in values.items():
        about = {"data": {"text/plain": repr(value)}, "metadata": {"scrapbook": {"name": name}}}
        cell.outputs.append(nbformat.v4.new_output("display_data", **about))
    return nbformat.v4.new_notebook(cells=[cell])


def test_the_book_itself_shows_what_its_chapters_claim():
    claiming = [name for name in CHAPTERS if DECLARED[name].claims]
    assert "02_additive_advantage" in claiming
    for name in claiming:
        assert DECLARED[name].fails(glued_values(executed(name).notebook)) == []


@pytest.mark.usefixtures("no_runs")
def test_the_command_writes_students_key_and_table_and_overwrites_nothing(tmp_path, capsys):
    out = tmp_path / "class"
    names = tmp_path / "students.csv"
    names.write_text("Ada Lovelace,3\nÉmilie du Châtelet,1\n", encoding="utf-8")
    arguments = ["teach", "02_additive_advantage", "--list", str(names), "--out", str(out)]
    assert cli.main(arguments) == 0
    written = {path.relative_to(out).as_posix() for path in out.rglob("*.ipynb")}
    assert written == {
        f"{kind}/{name}.ipynb"
        for kind in ("students", "key")
        for name in ("Ada-Lovelace", "Émilie-du-Châtelet")
    }
    with open(out / "key.csv", encoding="utf-8") as file:
        assert [row["student"] for row in csv.DictReader(file)] == [
            "Ada Lovelace",
            "Émilie du Châtelet",
        ]
    mine = out / "students" / "Ada-Lovelace.ipynb"
    nbformat.validate(nbformat.read(mine, as_version=4))
    mine.write_text("my answers")
    assert cli.main(arguments) == 0
    assert mine.read_text() == "my answers"
    assert "4 kept" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "names", "message"),
    [
        ("nosuch --seats 3", "", "there is no chapter 'nosuch'"),
        ("02_additive_advantage --seats 0", "", "0 is not a whole number from 1 to 1000"),
        ("02_additive_advantage --list absent.txt", "", "cannot read absent.txt"),
        ("02 --list names.txt", "A\nB\nA\n", "'A' is there twice"),
        ("02 --list names.txt", "Ada\nBen\nada\n", "'ada' and 'Ada' would share a file"),
        ("01 --seats 1 --out .", "", "had other parameters"),
    ],
)
def test_the_command_refuses_in_one_line(words, names, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "names.txt").write_text(names)
    (tmp_path / "key.csv").write_text("student,chapter,runs\nAda,01_setting,3\n")
    assert cli.main(["teach", "--out", "class", *words.split()]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert not (tmp_path / "class").exists()


@pytest.mark.usefixtures("no_runs")
def test_a_key_that_would_not_fit_the_notebooks_is_refused(tmp_path, capsys):
    arguments = ["teach", "02_additive_advantage", "--seats", "2", "--out", str(tmp_path / "c")]
    assert cli.main(arguments) == 0
    before = (tmp_path / "c" / "key.csv").read_text()
    assert cli.main([*arguments, "--seed", "5"]) == 2
    assert "already holds notebooks of 'seat-01'" in capsys.readouterr().err
    assert (tmp_path / "c" / "key.csv").read_text() == before
    (tmp_path / "c" / "key.csv").unlink()
    assert cli.main([*arguments, "--seed", "5"]) == 2
    assert "already holds seat-01.ipynb, which its key.csv does not list" in capsys.readouterr().err


@pytest.mark.usefixtures("no_runs")
def test_a_name_that_comes_later_gets_no_others_notebook(tmp_path, capsys):
    names = tmp_path / "students.txt"
    arguments = ["teach", "01_setting", "--list", str(names), "--out", str(tmp_path / "c")]
    names.write_text("Ada Lee\n")
    assert cli.main(arguments) == 0
    names.write_text("Ada-Lee\n")
    assert cli.main(arguments) == 2
    assert "does not list for 'Ada-Lee'" in capsys.readouterr().err


@pytest.mark.usefixtures("no_runs")
def test_an_interrupted_class_goes_on_with_its_own_seed_only(tmp_path, capsys, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    arguments = ["teach", "01_setting", "--seats", "1", "--out", str(tmp_path / "c")]
    with monkeypatch.context() as patched:
        patched.setattr("book.tools.class_copies.key_copy", interrupted)
        assert cli.main([*arguments, "--seed", "4"]) == 130
    assert [path.name for path in (tmp_path / "c").rglob("*.ipynb")] == ["seat-01.ipynb"]
    assert cli.main([*arguments, "--seed", "5"]) == 2
    assert cli.main([*arguments, "--seed", "4"]) == 0
    assert "1 notebooks written" in capsys.readouterr().out


def test_a_class_list_is_read_as_teachers_write_it(tmp_path):
    plain, table = tmp_path / "students.txt", tmp_path / "students.csv"
    plain.write_text("\ufeffMüller, Anna\n\n  Müller, Bernd \n../x/y\n", encoding="utf-8")
    assert read_list(plain) == ["Müller, Anna", "Müller, Bernd", "../x/y"]
    assert [file_name(name) for name in read_list(plain)] == ["Müller-Anna", "Müller-Bernd", "x-y"]
    table.write_text('"Müller, Anna",3\n\nAndre\u0301s,4\n', encoding="utf-8")
    assert read_list(table) == ["Müller, Anna", "Andrés"], "an accent is part of its letter"
    table.write_text("Müller, Anna;3\r\n\r\nJosé;4\r\n", encoding="utf-8")
    assert read_list(table) == ["Müller, Anna", "José"], "as spreadsheets write it in Germany"
    table.write_text('"Müller,\n Anna",3;4\nJosé,4\n', encoding="utf-8")
    assert read_list(table) == ["Müller, Anna", "José"]
    table.with_suffix(".tsv").write_text("Müller, Anna\t3\nJosé\t4\n", encoding="utf-8")
    assert read_list(table.with_suffix(".tsv")) == ["Müller, Anna", "José"]
    table.write_text('José,3\n"Müller, Anna,4\nBernd,5\n', encoding="utf-8")
    with pytest.raises(CommandError, match="line 3: unexpected end of data"):
        read_list(table)
    plain.write_text("x" * 201, encoding="utf-8")
    with pytest.raises(CommandError, match="is too long for the name of a file"):
        read_list(plain)


# A label of a statement, a figure, an exercise or a formula; a chapter's id; the key of a source.
CODE_NAME = re.compile(
    r"\b(?:alg|con|cor|def|eq|ex|fig|lem|prop|rem|sol|thm)-[a-z]+-[\w-]+"
    r"|[*`(\[](?:chapter-[\w-]+|\d\d_\w+|[a-z]+\d{4}[a-z]+)[]*`),]"
)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_copy_names_things_as_the_book_does_and_not_as_its_code(chapter):
    texts = [cell.source for cell in copied(chapter).cells if cell.cell_type == "markdown"]
    assert [name for text in texts for name in CODE_NAME.findall(text)] == []
    number = int(chapter[:2])
    whole = "\n".join(texts)
    labels = exercises(text_of(chapter))
    assert labels and "The answer, if you are in a hurry" not in whole
    for position in range(1, len(labels) + 1):
        assert f"> **Exercise {number}.{position}: " in whole
    assert f"*Fig. {number}.1*: " in whole


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("thm-sharper-any", "Theorem 13.2"),
        ("fig-scatter-main", "Fig. 7.1"),
        ("eq-learning-excess", "9.2"),
        ("sharper-open-question", "The open question"),
        ("ledger", "The ledger"),
        ("rollin2007translated", "Röllin [2007]"),
    ],
)
def test_labels_have_the_numbers_of_the_built_book(label, name):
    assert references(CHECKOUT)[label] == name


MYST = re.compile(
    r"\{[\w:-]+\}`"  # a role
    r"|^\W*\{[\w:-]+\}"  # a directive
    r"|^>? ?:[\w-]+:"  # an option of one
    r"|^\([\w-]+\)=|\$\$\s*\([\w-]+\)"  # labels of sections and formulas
    r"|\]\{[.#]|^%|^\+\+\+",  # attributes, comments, breaks
    re.MULTILINE,
)


@pytest.mark.parametrize("chapter", CHAPTERS)
@pytest.mark.parametrize("make", [student_copy, key_copy])
def test_a_copy_reads_in_plain_jupyter(chapter, make):
    made = for_jupyter(make(source(chapter), {}, "Ann", "a title"), CHECKOUT)
    nbformat.validate(made)
    texts = [cell.source for cell in made.cells if cell.cell_type == "markdown"]
    assert len(texts) > 10
    for text in texts:
        prose = re.sub(r"^(> )?```.*?^(> )?```$", "", text, flags=re.MULTILINE | re.DOTALL)
        assert not MYST.search(prose), MYST.search(prose)
        for name in macros(CHECKOUT):
            assert not re.search(rf"\\{name}(?![A-Za-z])", text), text
        lines = ["", *text.splitlines(), ""]
        for above, below in itertools.pairwise(lines):
            assert (above[:1] == ">") == (below[:1] == ">") or "" in (above, below), text
        for formula in FORMULA.findall(text):
            assert "\n>" not in formula, "Jupyter would show the mark of the quotation"
    assert any(text.startswith("*Fig. ") for text in texts)


def test_the_macros_are_the_configurations():
    named = macros(CHECKOUT)
    assert {"eps", "EAdv", "PP"} <= set(named)
    assert all(isinstance(meaning, str) for meaning in named.values()), "none takes arguments"
    plain = PlainMarkdown(named)
    assert plain(r"$\E_x \EAdv \eps\eta$") == (
        r"$\mathbb{E}_x \operatorname{EAdv} \varepsilon\eta$"
    )


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("so ({verdict}`T3.2-sqrt`).", "so (`T3.2-sqrt holds`)."),
        ("A [proved]{.grade\n.grade-proved} row.", "A `proved` row."),
        ("$$a$$ (eq-a)\n\nby {eq}`eq-a`", "$$a\\tag{eq-a}$$\n\nby *eq-a*"),
        ("```{note}\nA.\n```\n```{note}\nB.\n```", "> **Note**\n>\n> A.\n\n> **Note**\n>\n> B."),
        ("```{prf:proof}\n$$\na\n$$\n```", "> **Proof**\n>\n> $$ a $$"),
        ("```sh\nmake {x}`y` \\eps\n```", "```sh\nmake {x}`y` \\eps\n```"),
        ("{download}`the numbers <02_a/b.csv>`", "the numbers `b.csv`"),
        ("```{solution-start} ex-a\n:label: b\n```", "> **Solution: ex-a**\n>"),
        ("```{solution-end}\n```", ""),
    ],
)
def test_directives_become_markdown(source, shown):
    assert PlainMarkdown({"eps": "e"})(source) == shown


@pytest.mark.parametrize("expression", ["[1, 2]", "a + b", "answer[0]", "np.array(answer)"])
def test_a_check_of_no_single_name_cannot_be_copied(expression):
    notebook = source("01_setting")
    notebook.cells.append(nbformat.v4.new_code_cell(f'check("ex-setting-two", {expression})'))
    with pytest.raises(CommandError, match="looks at one name"):
        student_copy(notebook, {}, "Ann", "a title")


@pytest.mark.usefixtures("no_runs")
def test_a_folder_is_for_one_chapter(tmp_path, capsys):
    out, names = tmp_path / "class", tmp_path / "students.txt"
    names.write_text("Ada")
    assert cli.main(["teach", "02", "--list", str(names), "--out", str(out)]) == 0
    before = sorted(out.rglob("*"))
    names.write_text("Ben")
    capsys.readouterr()
    assert cli.main(["teach", "01", "--list", str(names), "--out", str(out)]) == 2
    error = capsys.readouterr().err
    assert "already holds notebooks of 02_" in error and error.count("\n") == 1
    assert sorted(out.rglob("*")) == before


def test_a_notebook_opened_elsewhere_says_how_to_install_the_package():
    first = next(cell for cell in copied("01_setting").cells if cell.cell_type == "code")
    exec(first.source, {"__name__": "here"})
    elsewhere = first.source.replace('"labelaudit")', '"no_such_package_here")')
    with pytest.raises(
        ModuleNotFoundError, match=r"clone.* pip install --editable '\.\[notebook\]'"
    ):
        exec(elsewhere, {})


@pytest.mark.parametrize(
    ("where", "package"),
    [
        ("git+https://a.example/b.git", "labelaudit[notebook] @ git+https://a.example/b.git"),
        (
            "wheels/labelaudit-0.1.0-py3-none-any.whl",
            "wheels/labelaudit-0.1.0-py3-none-any.whl[notebook]",
        ),
    ],
)
def test_a_notebook_installs_the_package_from_the_address_that_is_set(where, package, tmp_path):
    (tmp_path / "pyproject.toml").write_text(f'[tool.labelaudit]\ninstall-from = "{where}"\n')
    code = install_code(tmp_path / "pyproject.toml", "notebook")
    plain = TransformerManager().transform_cell(code)
    calls = []
    shell = type("Shell", (), {"run_line_magic": lambda self, *words: calls.append(words)})
    scope = {"get_ipython": shell}
    exec(plain, scope)
    assert calls == [], "where the package is installed nothing happens"
    exec(plain.replace('labelaudit")', 'no_such_package_here")'), scope)
    assert calls == [("pip", f"install --quiet '{package}'")]


def test_no_package_of_a_strangers_is_installed():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    where = settings["tool"]["labelaudit"]["install-from"]
    assert where == "" or "://" in where, "anybody may publish a package of that name"


@pytest.mark.parametrize("chapter", sorted(DECLARED))
def test_a_notebook_asks_for_torch_only_where_it_trains(chapter):
    ran = executed(chapter)
    used = {version.split()[0] for version in ran.facts["versions"]}
    assert "train" in extras(ran.notebook) or used.isdisjoint({"torch", "scikit-learn"})


def stated_minutes(chapter):
    """The minutes that a chapter's opening box states."""
    return int(re.search(r"\*\*Time to read:\*\* (\d+) minutes", text_of(chapter))[1])


def test_the_paths_of_a_course_state_the_chapters_times():
    page = (ROOT / "book" / "teach.md").read_text(encoding="utf-8")
    minutes = {int(name[:2]): stated_minutes(name) for name in CHAPTERS}

    def total(numbers):
        return sum(minutes[int(number)] for number in re.findall(r"\d+", numbers))

    weeks = re.findall(r"^\| \d \| ([\d, ]+) \| (\d+) \| *\S", page, re.MULTILINE)
    more = re.findall(r"\| (chapter \d+)[^|]*, (\d+) minutes \|", page)
    assert len(weeks) == 4 and more
    for read, stated in weeks + more:
        assert total(read) == int(stated)
    paths = re.findall(r"^\| ([a-z ]+) \| (.*) \| (\d+) \|$", page, re.MULTILINE)
    stated = {path: int(time) for path, _, time in paths}
    named = {
        path: total(" ".join(re.findall(r"chapters? [\d and]+", what))) for path, what, _ in paths
    }
    named["four weeks"] = sum(total(read) for read, _ in weeks)
    assert stated == named and len(stated) == 3
