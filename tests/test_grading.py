"""Grading a class: what students try gains nothing, and nobody's work or points are lost."""

import csv
import io

import nbformat
import pytest
from smoke import DECLARED, executed

from book.tools import grading, teaching
from book.tools.answers import Submission, collect, texts_of
from book.tools.class_copies import own_parameters, records, student_copy
from book.tools.class_list import class_rows, read_list
from labelaudit import cli
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


def test_the_students_own_parameters_are_used_and_the_written_ones_compared(tricks):
    assert tricks.values["first"] == 1.5
    assert tricks.written == {"epsilon": 50}


def test_an_object_that_equals_everything_leaves_as_a_number(tricks):
    assert tricks.values["equal"] == [1.0, 2.0]
    assert all(type(value) is float for value in tricks.values["equal"])


def test_an_endless_cell_is_stopped_and_the_others_run(tricks):
    assert any("ran longer than 3 s" in remark for remark in tricks.remarks)
    assert tricks.values["second"] == 2 and tricks.values["third"] == 3


def test_what_cannot_be_read_is_a_wrong_answer_and_spoils_no_other(tricks):
    assert tricks.values["odd"] == "RuntimeError"
    assert tricks.values["huge"] == "too long"
    assert isinstance(tricks.values["nested"], list)


def test_what_is_not_there_is_no_answer(tricks):
    assert "absent" not in tricks.values


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
    grade = grading.Grade("Ann")
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
    assert all(grade.points[label] == 0 for label in names if not names[label])
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


def test_files_are_found_as_platforms_name_them(tmp_path):
    names = ["Ann Lee", "Ann Lee Smith", "Bo", "Émilie"]
    files = ["Ann-Lee-Smith.ipynb", "late_991_Ann-Lee.ipynb", "Émilie_1/x.ipynb", "Bob.ipynb"]
    for file in files:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text("{}")
    owners, remarks = grading.find_files(tmp_path, names)
    assert {name: path.name for name, path in owners.items()} == {
        "Ann Lee": "late_991_Ann-Lee.ipynb",
        "Ann Lee Smith": "Ann-Lee-Smith.ipynb",
        "Émilie": "x.ipynb",
    }
    assert remarks == ["Bob.ipynb belongs to no student of the list"]
    (tmp_path / "Ann-Lee.ipynb").write_text("{}")
    _, remarks = grading.find_files(tmp_path, names)
    assert any(remark.startswith("Ann Lee: two notebooks") for remark in remarks)
    (tmp_path / "empty").mkdir()
    for folder, message in (("empty", "holds no notebook"), ("absent", "there is no folder")):
        with pytest.raises(CommandError, match=message):
            grading.find_files(tmp_path / folder, names)


def graded(points):
    grade = grading.Grade("Ann", points=points, reasons=dict.fromkeys(points, ""))
    return [grade]


def test_a_teachers_points_are_read_back_and_kept(tmp_path):
    path = tmp_path / "manual.csv"
    grades = graded({"ex-a": None, "ex-b": 1})
    grading.apply_manual(path, grades)
    assert path.read_text() == "student,exercise,points\nAnn,ex-a,\n"
    assert grades[0].total == 1
    path.write_text("student,exercise,points\nAnn,ex-a,2.5\nGone,ex-a,3\n")
    grades = graded({"ex-a": None, "ex-b": 1})
    grading.apply_manual(path, grades)
    assert grades[0].total == 3.5
    assert "Gone,ex-a,3" in path.read_text()
    for bad in ("many", "-1", "nan", "inf"):
        path.write_text(f"student,exercise,points\nAnn,ex-a,{bad}\n")
        with pytest.raises(CommandError, match=f"at least 0, not '{bad}'"):
            grading.apply_manual(path, graded({"ex-a": None}))


def test_an_exported_sheet_is_filled_and_nothing_else_in_it_changes(tmp_path):
    classes, sheet = tmp_path / "class.csv", tmp_path / "sheet.csv"
    classes.write_text("name;login\nAnn Lee;a1\nBo;b2\n", encoding="utf-8")
    sheet.write_bytes(
        '\ufeffStudent;Login;HW (7)\r\nPoints Possible;;9\r\n"Lee; Ann";a1;\r\nX;x9;5\r\n'.encode()
    )
    listed = class_rows(classes)
    listed = {name: {"Login": row["login"]} for name, row in listed.items()}
    totals = {"Ann Lee": 2.5, "Bo": 1.0}
    text, absent = grading.fill_sheet(sheet, "HW (7)", "Login", listed, totals)
    assert text.encode() == sheet.read_bytes().replace(b"a1;\r\n", b"a1;2.5\r\n")
    assert absent == ["Bo"]
    with pytest.raises(CommandError, match=r"--points: .* no column 'HW 8'; did you mean"):
        grading.fill_sheet(sheet, "HW 8", "Login", listed, totals)


def test_pages_show_what_students_wrote_as_text(tmp_path):
    [grade] = graded({"ex-a": None})
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


def test_headings_that_no_platform_uses_are_taken_where_they_are_named(tmp_path):
    path = tmp_path / "sheet.csv"
    path.write_text("Kennung,Punkte\na1,\n")
    text, absent = grading.fill_sheet(path, "Punkte", "Kennung", {"a1": {}}, {"a1": 3.0})
    assert text == "Kennung,Punkte\na1,3\n" and not absent
    assert read_list(path, ["Kennung"]) == ["a1"]
    with pytest.raises(CommandError, match="no column 'Points'; did you mean Punkte"):
        grading.fill_sheet(path, "Points", "Kennung", {"a1": {}}, {"a1": 3.0})


@pytest.mark.parametrize(
    ("encoding", "named"), [("cp1252", "Windows-1252 or Latin-1"), ("utf-16", "UTF-16")]
)
def test_another_encoding_is_named(encoding, named, tmp_path):
    path = tmp_path / "class.txt"
    path.write_text("José\n", encoding=encoding)
    with pytest.raises(CommandError, match=f"is not UTF-8 text; it seems to be {named}"):
        read_list(path)


def test_copies_of_another_seed_or_scale_are_refused_before_they_run(tmp_path):
    owners = {name: tmp_path / f"{name}.ipynb" for name in ("Ann", "Bo", "Cy")}
    for value, path in enumerate(owners.values()):
        nbformat.write(notebook(f"epsilon = {value}.5"), path)
    owners["Cy"].write_text("not a notebook")
    grading.check_copies(owners, {"Ann": {"epsilon": 9.0}, "Bo": {"epsilon": 1.5}})
    with pytest.raises(CommandError, match="none of the 2 notebooks has the parameters"):
        grading.check_copies(owners, {"Ann": {"epsilon": 9.0}, "Bo": {"epsilon": 8.0}})
    grading.check_copies({"Ann": owners["Ann"]}, {"Ann": {"epsilon": 9.0}})


def test_from_a_class_list_to_grades(tmp_path, monkeypatch, capsys):
    """Copies are made, one is answered, and the command grades it; the chapter's run is shared."""
    run = executed(CHAPTER)
    answers = {label: record["answer"] for label, record in records(run.notebook).items()}
    names = {e.label: e.name for e in grading.exercises(run.notebook) if e.name}
    collected = tmp_path / "collected"
    collected.mkdir()
    cells = ["epsilon = 1"] + [f"{names[label]} = {answers[label]!r}" for label in names]
    nbformat.write(notebook(*cells), collected / "Ann.ipynb")
    (collected / "Bo.ipynb").write_text("not a notebook")
    (tmp_path / "class.csv").write_text("name,login\nAnn,a1\nBo,b2\nCy,c3\n")
    monkeypatch.setattr(
        "book.tools.class_copies.run_class",
        lambda checkout, chapter, owned, scale, report: dict.fromkeys(owned, run.notebook),
    )
    command = ["grade", str(collected), "--list", str(tmp_path / "class.csv")]
    command += ["--chapter", "02", "--scale", "smoke", "--out", str(tmp_path / "grades")]
    assert cli.main([*command, "--into", "sheet.csv"]) == 2
    assert "--into, --points and --match go together" in capsys.readouterr().err
    assert cli.main([*command, "--seconds", "0"]) == 2
    assert not (tmp_path / "grades").exists()
    assert cli.main(command) == 0
    table = {row["student"]: row for row in rows((tmp_path / "grades/grades.csv").read_text())}
    assert table["Ann"]["total"] == str(len(names))
    assert table["Bo"]["remarks"].startswith("not a notebook")
    assert table["Cy"]["remarks"] == "nothing was handed in"
    assert table["Bo"]["total"] == table["Cy"]["total"] == "0"


def test_the_command_says_that_it_runs_students_code():
    assert "runs the students' code on this machine" in teaching.GRADE_EXAMPLES
