"""Every chapter at both ends of every range that it declares, one parameter at a time."""

import math

import pytest
from smoke import DECLARED, executed_in_process, glued, outputs

from book.tools.parameters import ContractError

pytestmark = pytest.mark.slow

# Parameters whose upper end only asks for hours of the same work; their lower end runs.
WORK = {"audit_rows", "epochs", "largest_drawn", "refits", "rows", "runs", "standin_rows"}
WORK |= {"train_rows", "train_sizes", "trials", "workers"}
WORK_IN = {("15_same_labels_next_week", "people")}
# What a chapter rejects, since the rows of its smoke scale do not suffice for it.
REJECTED = {
    ("12_privacy_utility", "bag_sizes", 512): "bag_size 512 leaves too few bags",
    ("12_privacy_utility", "pair_bag_sizes", 512): "bag_size 512 leaves too few bags",
    ("14_audit", "bag_sizes", 100000): "a bag size of 100000 makes 0 bags of 5,000 rows",
}


def ends():
    for chapter, declared in DECLARED.items():
        for name, parameter in declared.parameters.items():
            if parameter.low > -math.inf:
                yield chapter, name, parameter.low
                if name not in WORK and (chapter, name) not in WORK_IN:
                    yield chapter, name, parameter.high


ENDS = list(ends())


def test_every_exception_is_declared():
    assert set(ENDS) >= set(REJECTED)
    declared = {(chapter, name) for chapter, name, _ in ENDS}
    assert declared >= WORK_IN and {name for _, name in declared} >= WORK


@pytest.mark.parametrize(("chapter", "name", "end"), ENDS)
def test_a_chapter_runs_at_the_ends_of_its_ranges(chapter, name, end):
    declared = DECLARED[chapter]
    value = [end] if declared.parameters[name].is_list else end
    values = declared.resolve("smoke", {name: value})
    if message := REJECTED.get((chapter, name, end)):
        with pytest.raises(ContractError, match=message) as rejection:
            executed_in_process(chapter, values)
        assert "\n" not in str(rejection.value)
        return
    execution = executed_in_process(chapter, values)
    assert not any(
        isinstance(number, float) and math.isnan(number) for number in glued(execution).values()
    )
    assert [output for _, output in outputs(execution) if output.get("name") == "stderr"] == []
