"""Every chapter at both ends of every range that it declares, one parameter at a time."""

import math

import pytest
from smoke import DECLARED, executed_in_process, glued, outputs

from book.tools.parameters import ContractError

pytestmark = pytest.mark.slow

# Parameters whose upper end only asks for hours of the same work; their lower end runs.
WORK = {"audit_rows", "epochs", "largest_drawn", "rows", "runs", "standin_rows"}
WORK |= {"train_rows", "train_sizes", "trials", "workers"}
# What a chapter rejects, since the rest of its smoke scale does not fit it.
REJECTED = {}


def ends():
    for chapter, declared in DECLARED.items():
        for name, parameter in declared.parameters.items():
            if parameter.low > -math.inf:
                highest = () if name in WORK else (parameter.high,)
                yield from ((chapter, name, end) for end in (parameter.low, *highest))


ENDS = list(ends())


def test_every_exception_is_declared():
    assert set(REJECTED) <= set(ENDS)
    assert WORK <= {name for declared in DECLARED.values() for name in declared.parameters}


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
