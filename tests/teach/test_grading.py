"""Grading a class: what students try gains nothing, and nobody's work or points are lost."""

import csv
import io
import json
import os
import tracemalloc
import unicodedata

import nbformat
import pytest
from smoke import DECLARED, executed

from book import cli
from book.chapters.exercises import check
from book.tools import grading
from book.tools.answers import Submission, collect, texts_of
from book.tools.class_copies import own_parameters, records, student_copy
from book.tools.class_list import class_rows, read_list, read_sheet
from book.tools.handed_in import HandIn, find_owners, read_folder, read_notebook
from labelaudit.command_line import CommandError

CHAPTER = "02_additive_advantage"


def notebook(*sources, tags=("parameters",)):
    made = nbformat.v4.new_notebook()
    made.cells = [nbformat.v4.new_code_cell(source) for source in sources]
    made.cells[0].metadata["tags"] = list(tags)
    return made


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture(scope="module")
def tricks():
    """One notebook that tries many things; each cell is one trick."""
    made = notebook(
        "epsilon = 50",
        "import book.chapters.exercises as real\nreal.check = real.judge = lambda *a, **k: True",
        "class Equal(float):\n"
        "    def __eq__(self, other): return True\n"
        "    def __sub__(self, other): return 0.0\n"
        "    __rsub__ = __sub__\n"
        "    __hash__ = float.__hash__\n"
        "equal = [Equal(1), Equal(2)]",
        "get_ipython().showtraceback = lambda *a, **k: None\n1 / 0",
        "first = epsilon",
        "class Odd:\n    def __repr__(self): raise RuntimeError\nodd = Odd()",
        "nested = []\nfor _ in range(50): nested = [nested]",
        "huge = 'x' * 10_000_000",
        "second = 2",
        "while True: pass",
        "third = 3",
        "open('file.txt', 'w').write('mine')",
    )
    names = ["equal", "first", "second", "third", "odd", "nested", "huge", "absent"]
    return collect(made, {"epsilon": 1.5}, names, seconds=3)


def test_tricks_gain_nothing_and_cost_no_other_answer(tricks):
    values = tricks.values
    assert values["first"] == 1.5, "the student's own parameters, not the written ones"
    assert values["equal"] == [1.0, 2.0] and {type(value) for value in values["equal"]} == {float}
    assert any("ran longer than 3 s" in remark for remark in tricks.remarks)
    assert values["second"] == 2 and values["third"] == 3, "they stand around an endless cell"
    assert values["odd"] == "RuntimeError" and len(values["huge"]) < 300
    assert isinstance(values["nested"], list) and "absent" not in values


def test_a_kernel_that_cannot_be_read_costs_the_cells_after_it_only(monkeypatch):
    monkeypatch.setattr("book.tools.answers.PATIENCE", 2)
    made = notebook("epsilon = 1", "early = 1", "import json; json.dumps = str", "late = 2")
    submission = collect(made, {"epsilon": 1.0}, ["early", "late"], seconds=5)
    assert submission.values == {"early": 1} and submission.remarks


def test_a_dead_kernel_costs_the_cells_after_it_only():
    made = notebook("epsilon = 1", "early = 1", "import os; os._exit(1)", "late = 2")
    submission = collect(made, {"epsilon": 1.0}, ["early", "late"], seconds=20)
    assert submission.values == {"early": 1}
    assert any("the kernel died" in remark for remark in submission.remarks)


def judged(**values):
    run = executed(CHAPTER).notebook
    grade = grading.Grade(student="Ann")
    listed = grading.exercises(run)
    grading.judge(grade, Submission(values=values, texts={}), listed, records(run))
    return grade


def test_the_books_own_answers_are_right_and_others_are_not():
    run = executed(CHAPTER).notebook
    names = {exercise.label: exercise.name for exercise in grading.exercises(run)}
    answers = {names[label]: record["answer"] for label, record in records(run).items()}
    grade = judged(**answers)
    computed = [label for label, name in names.items() if name]
    assert computed and all(grade.points[label] == 1 for label in computed)
    to_read = [label for label in names if not names[label]]
    assert to_read and all(grade.points[label] is None for label in to_read)
    wrong = judged(**{name: [[0.5] * 4] * 2 for name in answers})
    assert wrong.total == 0 and all("not yet" in wrong.reasons[label] for label in computed)
    assert judged().total == 0


def test_a_neighbours_copy_is_recognised_by_its_parameters():
    chapter = DECLARED[CHAPTER]
    owned = {name: own_parameters(chapter, "smoke", name, 0) for name in ("Ann", "Bob")}
    assert grading._parameters("Bob", owned["Ann"], owned) == ["this is the copy of Ann"]
    assert grading._parameters("Bob", owned["Bob"], owned) == []
    changed = {**owned["Bob"], "epsilon": 0.0}
    assert "were changed" in grading._parameters("Bob", changed, owned)[0]


def test_a_neighbours_notebook_is_named_in_the_grades():
    run = executed(CHAPTER).notebook
    owned = {"Ann": {"own_prior": 0.1}, "Bo": {"own_prior": 0.2}, "Cy": {"own_prior": 0.3}}
    written = {"Ann": 0.1, "Bo": 0.1, "Cy": 0.4}
    found = {
        name: HandIn(path=f"{name}.ipynb", time=0, notebook=notebook(f"own_prior = {value}"))
        for name, value in written.items()
    }
    grades = grading.grade_class(found, owned, dict.fromkeys(owned, run), seconds=20)
    remarks = {grade.student: grade.remarks for grade in grades}
    assert remarks["Ann"] == [] and remarks["Bo"] == ["this is the copy of Ann"]
    assert "were changed" in remarks["Cy"][0]


def test_every_exercise_of_a_copy_has_a_place_for_its_answer():
    for chapter in DECLARED:
        run = executed(chapter).notebook
        copy = student_copy(run, {}, "Ann", "a title")
        texts = texts_of(copy)
        code = "\n".join(cell.source for cell in copy.cells if cell.cell_type == "code")
        for exercise in grading.exercises(run):
            if exercise.name:
                assert f"{exercise.name} = ...  # your answer" in code
            else:
                assert texts[exercise.label] == ""


# What students write for numbers, and whether it is 1/4 and 3/4.
FORMS = {
    "[0.25, 0.75]": True,
    "pd.DataFrame({'first': [0.25], 'second': [0.75]})": True,
    "pd.DataFrame({'first': [0.25], 'second': [0.25]})": False,
    "pd.Series([0.25, 0.75])": True,
    "pd.Series([Fraction(1, 4), Fraction(3, 4)], index=['a', 'b'])": True,
    "[Fraction(1, 4), Fraction(3, 4)]": True,
    "[Fraction(1, 4), Fraction(1, 4)]": False,
    "[sympy.Rational(1, 4), 1 - sympy.Rational(1, 4)]": True,
    "[sympy.Rational(1, 4), sympy.sqrt(2)]": False,
    "[sympy.Symbol('x'), 0.75]": False,
    "sympy.Matrix([sympy.Rational(1, 4), 0.75])": True,
    "(Decimal('0.25'), Decimal('0.75'))": True,
    "(Decimal('0.25'), Decimal('NaN'))": False,
    "np.array([[0.25], [0.75]])": True,
    "np.array([0.25, 0.75], dtype=np.float32)": True,
    "['0.25', '3/4']": False,
    "['0.25', '0.75']": True,
    "{'first': 0.25, 'second': 0.75}": False,
    "{0.25, 0.75}": False,
    "[0.25 + 0j, 0.75]": False,
    "map(float, [0.25, 0.75])": False,
    "[None, 0.75]": False,
    "[0.25, 10**400]": False,
    "Printed()": False,
}
NEEDED = """
import numpy as np, pandas as pd, sympy
from decimal import Decimal
from fractions import Fraction
class Printed:
    def __repr__(self): return "[0.25, 0.75]"
"""


@pytest.fixture(scope="module")
def exported():
    cells = [f"answer_{number} = {form}" for number, form in enumerate(FORMS)]
    names = [f"answer_{number}" for number in range(len(FORMS))]
    values = collect(notebook("a = 1", NEEDED, *cells), {"a": 1}, names, seconds=60).values
    return {form: values[name] for form, name in zip(FORMS, names, strict=True)}


@pytest.mark.parametrize(("form", "right"), FORMS.items())
def test_an_answer_is_right_in_the_notebook_and_in_the_grade_or_in_neither(form, right, exported):
    scope = {}
    exec(f"{NEEDED}\nanswer = {form}", scope)
    assert check("ex-setting-two", scope["answer"], own_prior=0.25).right == right
    assert check("ex-setting-two", exported[form], own_prior=0.25).right == right


def test_a_dictionary_is_read_by_its_own_names():
    cells = ["a = 1", "from fractions import Fraction", NEEDED]
    named = {"uniform": "Fraction(7)", "own": "np.int64(61)", "mass": "(15 / 16) ** 61"}
    text = ", ".join(f"{name!r}: {value}" for name, value in named.items())
    odd = text.replace("'own'", "sympy.Symbol('own')")
    made = notebook(*cells, f"by_name = {{{text}}}", f"odd = {{{odd}}}")
    values = collect(made, {"a": 1}, ["by_name", "odd"], seconds=60).values
    page = {"means": {"uniform": 0.5}, "level": 0.98, "own_prior": 1 / 16}
    assert check("ex-distribution-size", values["by_name"], **page).right
    assert "There is no entry 'own'" in check("ex-distribution-size", values["odd"], **page).hint


def text_cell(source, **mark):
    return nbformat.v4.new_markdown_cell(source, metadata={"labelaudit": mark} if mark else {})


def test_a_text_counts_wherever_it_stands_below_its_exercise():
    made = nbformat.v4.new_notebook()
    made.cells = [
        text_cell("A remark of mine above all exercises."),
        text_cell("> Prove it.", exercise="ex-a"),
        text_cell("Before."),
        text_cell("*Your answer to ex-a:*\n\nIn the cell.", answer="ex-a"),
        text_cell("*Your answer to ex-a:*", answer="ex-a"),
        nbformat.v4.new_raw_cell("Below."),
        nbformat.v4.new_code_cell("by_code = 1"),
        text_cell("> Explain it.", exercise="ex-b"),
        text_cell("*Your answer to A title (with $k$):*", answer="ex-b"),
        text_cell("## Summary", book=True),
        text_cell("After the end."),
    ]
    texts = texts_of(made)
    assert texts["ex-a"].split("\n\n") == ["Before.", "In the cell.", "Below.", "by_code = 1"]
    assert texts["ex-b"] == ""


def test_cells_of_a_student_are_told_from_all_cells_of_the_book():
    run = executed(CHAPTER).notebook
    copy = student_copy(run, {}, "Ann", "a title")
    places = [
        number
        for number, cell in enumerate(copy.cells)
        if "answer" in cell.metadata.get("labelaudit", {})
    ]
    assert len(places) == len([e for e in grading.exercises(run) if not e.name]) > 0
    for place in reversed(places):
        copy.cells.insert(place + 1, text_cell(f"Mine, {place}."))
    texts = texts_of(read_notebook(nbformat.writes(copy).encode()))
    assert [text for text in texts.values() if text] == [f"Mine, {place}." for place in places]


def owners_of(folder, names, **own):
    """The owners of the files in a folder, and their names."""
    owned = {name: {"own_prior": own.get(name, 0.1)} for name in names}
    owners = find_owners(read_folder(folder)[0], owned)
    return owners, {name: hand_in.path for name, hand_in in owners.found.items()}


def test_files_are_found_as_platforms_name_them(tmp_path):
    names = ["Ann Lee", "Ann Lee Smith", "Bo", "Émilie"]
    apart = unicodedata.normalize("NFD", "Émilie_1/x.ipynb")
    assert apart != "Émilie_1/x.ipynb"
    for file in ("Ann-Lee-Smith.ipynb", "late_991/ann lee_2.ipynb", apart, "Bob.ipynb"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text("{}")
    owners, files = owners_of(tmp_path, names)
    assert files == {
        "Ann Lee": "late_991/ann lee_2.ipynb",
        "Ann Lee Smith": "Ann-Lee-Smith.ipynb",
        "Émilie": apart,
    }
    assert owners.remarks == ["Bob.ipynb belongs to no student of the list"]
    assert owners.unowned == ["Bob.ipynb"]
    (tmp_path / "Ann-Lee.ipynb").write_text("{}")
    owners, files = owners_of(tmp_path, names)
    assert files["Ann Lee"] == "Ann-Lee.ipynb", "the newer one"
    assert any(remark.startswith("Ann Lee: two notebooks") for remark in owners.remarks)
    (tmp_path / "empty").mkdir()
    for folder, message in (("empty", "holds no notebook"), ("absent", "there is no folder")):
        with pytest.raises(CommandError, match=message):
            read_folder(tmp_path / folder)


def test_a_renamed_file_finds_its_owner_by_what_it_holds(tmp_path):
    own = {"Ann": 0.123456, "Bo": 0.234567, "Cy": 0.345678}
    by_number, by_title, neither = notebook("own_prior = 0.234567"), notebook("x = 1"), notebook("")
    by_title.metadata["title"] = "Additive advantage: Cy"
    for name, made in (("final", by_number), ("homework", by_title), ("other", neither)):
        nbformat.write(made, tmp_path / f"{name}.ipynb")
    nbformat.write(notebook("own_prior = 0.234567"), tmp_path / "Ann.ipynb")
    owners, files = owners_of(tmp_path, own, **own)
    assert files == {"Ann": "Ann.ipynb", "Bo": "final.ipynb", "Cy": "homework.ipynb"}
    assert owners.unowned == ["other.ipynb"]
    nbformat.write(by_number, tmp_path / "Bo.ipynb")
    os.utime(tmp_path / "Bo.ipynb", (1, 1))
    owners, files = owners_of(tmp_path, own, **own)
    assert files["Bo"] == "Bo.ipynb", "a copy under another name never replaces it"
    assert owners.unowned == ["final.ipynb", "other.ipynb"]


def test_links_are_not_followed(tmp_path):
    secret = tmp_path / "key"
    (tmp_path / "collected").mkdir()
    secret.mkdir()
    for path in (secret / "Ann.ipynb", tmp_path / "collected" / "Bo.ipynb"):
        path.write_text("{}")
    (tmp_path / "collected" / "Ann.ipynb").symlink_to(secret / "Ann.ipynb")
    (tmp_path / "collected" / "more").symlink_to(secret, target_is_directory=True)
    hand_ins, remarks = read_folder(tmp_path / "collected")
    assert [hand_in.path for hand_in in hand_ins] == ["Bo.ipynb"]
    assert remarks == ["Ann.ipynb is a symbolic link, which is not followed"]


# What may be wrong with a notebook's data, and whether its answer can be read all the same.
DAMAGES = {
    "nothing": (lambda data: None, True),
    "tags null": (lambda data: data["cells"][1]["metadata"].update(tags=None), True),
    "tags 3": (lambda data: data["cells"][1]["metadata"].update(tags=3, labelaudit=[1]), True),
    "metadata null": (lambda data: data["cells"][1].update(metadata=None), True),
    "outputs 5": (lambda data: data["cells"][1].update(outputs=5), True),
    "source 12": (lambda data: data["cells"][1].update(source=12), False),
    "minus": (lambda data: data["cells"][0].update(source="x = " + "-" * 100_000 + "1"), True),
    "brackets": (lambda data: data["cells"][0].update(source="x = " + "(" * 5_000), True),
    "title": (lambda data: data.update(metadata={"title": {}}), True),
    "cell 3": (lambda data: data["cells"].append(3), True),
    "cells {}": (lambda data: data.update(cells={}), False),
    "cell type": (lambda data: data["cells"][1].update(cell_type=["code"]), False),
    "no dictionary": (lambda data: data.clear(), False),
}


def test_a_damaged_notebook_costs_its_own_answers_at_most(tmp_path):
    for name, (damage, _) in DAMAGES.items():
        sound = notebook("own_prior = 0.2", "two_posteriors = [0.2, 0.8]")
        data = json.loads(nbformat.writes(sound))
        damage(data)
        (tmp_path / f"{name}.ipynb").write_text(json.dumps(data))
    owned = {name: {"own_prior": 0.2} for name in DAMAGES}
    owners = find_owners(read_folder(tmp_path)[0], owned)
    runs = dict.fromkeys(owned, executed("01_setting").notebook)
    grades = list(grading.grade_class(owners.found, owned, runs, seconds=20))
    answered = {grade.student: "ex-setting-two" in grade.answers for grade in grades}
    assert answered == {name: readable for name, (_, readable) in DAMAGES.items()}


def test_what_a_cell_prints_does_not_pile_up_in_the_graders_memory():
    loop = "for _ in range(30): print('x' * 5_000_000, flush=True); time.sleep(0.1)"
    made = notebook("a = 1", "import time", loop, "b = 2", "1 / 0")
    tracemalloc.start()
    submission = collect(made, {"a": 1}, ["b"], seconds=60)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 75_000_000, "150 MB were printed"
    assert submission.values == {"b": 2}
    assert submission.remarks == ["cells that ended in an error: 1"]


def graded(points):
    return grading.Grade(student="Ann", points=points, reasons=dict.fromkeys(points, ""))


def test_a_teachers_points_are_read_back_and_kept(tmp_path):
    path = tmp_path / "manual.csv"
    manual, grade = grading.read_manual(path, 4), graded({"ex-a": None, "ex-b": 1})
    grading.apply_manual(manual, grade)
    assert grading.manual_table(manual) == "student,exercise,points\nAnn,ex-a,\n"
    assert grade.total == 1
    path.write_text("student,exercise,points\nAnn,ex-a,2.5\nGone,ex-a,3\n")
    manual, grade = grading.read_manual(path, 4), graded({"ex-a": None, "ex-b": 1})
    grading.apply_manual(manual, grade)
    assert grade.total == 3.5
    assert grading.manual_table(manual) == path.read_text()
    for bad in ("many", "-1", "nan", "inf", "4.5"):
        path.write_text(f"student,exercise,points\nAnn,ex-a,{bad}\n")
        with pytest.raises(CommandError, match=f"Ann, ex-a: .* from 0 to 4, not '{bad}'"):
            grading.read_manual(path, 4)


def test_an_exported_sheet_is_filled_and_nothing_else_in_it_changes(tmp_path):
    classes, sheet = tmp_path / "class.csv", tmp_path / "sheet.csv"
    classes.write_text("name;login\nAnn Lee;a1\nBo;b2\n", encoding="utf-8")
    sheet.write_bytes(
        '\ufeffStudent;Login;HW (7)\r\nPoints Possible;;9\r\n"Lee; Ann";a1;\r\nX;x9;5\r\n'.encode()
    )
    listed = class_rows(classes)
    listed = {name: {"Login": row["login"]} for name, row in listed.items()}
    totals = {"Ann Lee": 2.5, "Bo": 1.0}
    exported = read_sheet(sheet, "--into", headed=True)
    text, absent = grading.fill_sheet(exported, "HW (7)", "Login", listed, totals)
    assert text.encode() == sheet.read_bytes().replace(b"a1;\r\n", b"a1;2.5\r\n")
    assert absent == ["Bo"]
    with pytest.raises(CommandError, match=r"--points: .* no column 'HW 8'; did you mean"):
        grading.fill_sheet(exported, "HW 8", "Login", listed, totals)


def test_pages_show_what_students_wrote_as_text(tmp_path):
    grade = graded({"ex-a": None})
    grade.answers["ex-a"] = "<script>alert(1)</script>"
    exercise = grading.Exercise("ex-a", "To explain")
    grading.write_pages(tmp_path, "A chapter", [exercise], [grade])
    for page in ("feedback/Ann.html", "by-exercise/ex-a.html"):
        text = (tmp_path / page).read_text(encoding="utf-8")
        assert "<script>" not in text and "&lt;script&gt;" in text


@pytest.mark.parametrize(
    ("table", "students"),
    [
        ("name\nAnn\nBo\n", ["Ann", "Bo"]),
        ("Surname,First name,ID number\nLee,Ann,1\nSmith,Bo,2\n", ["Ann Lee", "Bo Smith"]),
        ("Nachname;Vorname\nMüller;Anna\nMüller;Bernd\n", ["Anna Müller", "Bernd Müller"]),
        ('Student,ID\n    Points Possible,\n"Lee, Ann",1\n"Student, Test",\n', ["Lee, Ann"]),
        ("Ann,1\nBo,2\n", ["Ann", "Bo"]),
    ],
)
def test_class_lists_of_platforms_are_read_by_their_headings(table, students, tmp_path):
    path = tmp_path / "class.csv"
    path.write_text(table, encoding="utf-8")
    assert read_list(path) == students


def test_columns_of_a_class_list_can_be_chosen(tmp_path):
    path = tmp_path / "class.csv"
    path.write_text("Name,Login ID\nAnn,a1\nAnn,a2\n")
    with pytest.raises(CommandError, match=r"'Ann' is there twice.*--column"):
        read_list(path)
    assert read_list(path, ["Login ID"]) == ["a1", "a2"]
    assert read_list(path, ["name", "login id"]) == ["Ann a1", "Ann a2"]
    with pytest.raises(CommandError, match="no column 'Logn ID'; did you mean"):
        read_list(path, ["Logn ID"])


@pytest.mark.parametrize(
    ("encoding", "named"), [("cp1252", "Windows-1252 or Latin-1"), ("utf-16", "UTF-16")]
)
def test_another_encoding_is_named(encoding, named, tmp_path):
    path = tmp_path / "class.txt"
    path.write_text("José\n", encoding=encoding)
    with pytest.raises(CommandError, match=f"is not UTF-8 text; it seems to be {named}"):
        read_list(path)


def test_copies_of_another_seed_or_scale_are_refused_before_they_run():
    hand_ins = [
        HandIn(path="a", time=0, notebook=notebook(f"epsilon = {value}.5")) for value in (0, 1)
    ]
    hand_ins.append(HandIn(path="c", time=0, fault="not a notebook"))
    grading.check_copies(hand_ins, [{"epsilon": 9.0}, {"epsilon": 1.5}])
    with pytest.raises(CommandError, match="none of the 2 notebooks has the parameters"):
        grading.check_copies(hand_ins, [{"epsilon": 9.0}, {"epsilon": 8.0}])
    grading.check_copies(hand_ins[:1], [{"epsilon": 9.0}])


@pytest.fixture
def class_of_three(tmp_path, monkeypatch):
    """A class list, a folder for what is handed in, and the command; all share the book's run."""
    run = executed(CHAPTER)
    (tmp_path / "collected").mkdir()
    (tmp_path / "class.csv").write_text("name,login\nAnn,a1\nBo,b2\nCy,c3\n")
    monkeypatch.setattr(
        "book.tools.class_copies.run_class",
        lambda checkout, chapter, owned, scale, report: dict.fromkeys(owned, run.notebook),
    )
    command = ["grade", str(tmp_path / "collected"), "--list", str(tmp_path / "class.csv")]
    return [*command, "--chapter", "02", "--scale", "smoke", "--out", str(tmp_path / "grades")]


def right_answers():
    """Cells with the right answers of the book's own run."""
    run = executed(CHAPTER)
    answers = {label: record["answer"] for label, record in records(run.notebook).items()}
    names = {e.label: e.name for e in grading.exercises(run.notebook) if e.name}
    return ["epsilon = 1"] + [f"{names[label]} = {answers[label]!r}" for label in names]


def grades_in(folder):
    table = rows((folder / "grades/grades.csv").read_text())
    return {row["student"]: row for row in table}


def test_from_a_class_list_to_grades(tmp_path, class_of_three, capsys):
    cells = right_answers()
    nbformat.write(notebook(*cells), tmp_path / "collected" / "Ann.ipynb")
    (tmp_path / "collected" / "Bo.ipynb").write_text("not a notebook")
    assert cli.main([*class_of_three, "--into", "sheet.csv"]) == 2
    assert "--into, --points and --match go together" in capsys.readouterr().err
    for option in ("--seconds", "--most"):
        assert cli.main([*class_of_three, option, "0"]) == 2
    assert not (tmp_path / "grades").exists()
    assert cli.main(class_of_three) == 0
    table = grades_in(tmp_path)
    assert table["Ann"]["total"] == str(len(cells) - 1)
    assert table["Bo"]["remarks"].startswith("not a notebook")
    assert table["Cy"]["remarks"] == "nothing was handed in"
    assert table["Bo"]["total"] == table["Cy"]["total"] == "0"
    to_read = {(row["student"], row["exercise"]) for row in rows(
        (tmp_path / "grades" / "manual.csv").read_text()
    )}  # fmt: skip
    texts = [e.label for e in grading.exercises(executed(CHAPTER).notebook) if not e.name]
    assert texts and to_read == {(name, label) for name in table for label in texts}
    (tmp_path / "collected" / "homework.ipynb").write_text("{}")
    assert cli.main(class_of_three) == 1
    assert "not graded: homework.ipynb" in capsys.readouterr().err


def test_a_notebook_cannot_change_what_is_read_nor_undo_what_was_graded(
    tmp_path, class_of_three, monkeypatch
):
    collected, manual = tmp_path / "collected", tmp_path / "grades" / "manual.csv"
    cells = right_answers()
    label = next(e.label for e in grading.exercises(executed(CHAPTER).notebook) if not e.name)
    trick = (
        f"from pathlib import Path\nPath({str(collected / 'Bo.ipynb')!r}).unlink()\n"
        f"Path({str(manual)!r}).parent.mkdir(exist_ok=True)\n"
        f"Path({str(manual)!r}).write_text('student,exercise,points\\nAnn,{label},1\\n')"
    )
    own = own_parameters(DECLARED[CHAPTER], "smoke", "Ann", 0)
    written = "\n".join(f"{name} = {value!r}" for name, value in own.items())
    nbformat.write(notebook(written, *cells[1:], trick), collected / "Ann.ipynb")
    nbformat.write(notebook(*cells), collected / "Bo.ipynb")
    collect_plainly = collect

    def interrupted_at_the_second(*arguments):
        if (tmp_path / "grades" / "grades.csv").exists():
            raise KeyboardInterrupt
        return collect_plainly(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(grading, "collect", interrupted_at_the_second)
        assert cli.main(class_of_three) == 130
    assert list(grades_in(tmp_path)) == ["Ann"]
    assert not (collected / "Bo.ipynb").exists(), "otherwise nothing was tried"
    nbformat.write(notebook(*cells), collected / "Bo.ipynb")
    assert cli.main(class_of_three) == 0
    table = grades_in(tmp_path)
    assert table["Ann"]["total"] == table["Bo"]["total"] == str(len(cells) - 1)
