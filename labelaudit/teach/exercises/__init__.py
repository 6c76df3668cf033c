"""What must hold of an answer: one function for each exercise that is computed.

A function takes the answer, and by name the page's parameters it depends on. It returns if the
answer is right and raises a `Hint` if not, the most helpful one first. Each works its numbers out
by another road than the chapter's solution where there is one, and never compares text.
"""

from labelaudit.teach.exercises import attack, bounds, practice, shifts
from labelaudit.teach.exercises.tools import EXERCISES, Hint

__all__ = ["EXERCISES", "Hint", "attack", "bounds", "practice", "shifts"]
