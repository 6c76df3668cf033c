"""Every mechanism of the paper is a noisy channel on a bag's label count.

A mechanism turns the count s of a bag's positive labels into a release z with likelihood
L(z | s). Randomized response is a bag of one. Three kinds cover all of them:

* the count plus two-sided noise whose neighbouring terms have ratio exp(-epsilon): label
  proportions (no noise), geometric and Laplace noise, randomized response (geometric, bag of one);
* `NoRelease`, for the paper's uninformed attacker;
* `CountChannel`, any finite channel as a matrix.

`base` defines what a mechanism is, `paper` the paper's mechanisms, `count_channels` others that are
in use, `kinds` their names and colours, `custom` what reads and tests a mechanism of the user's.
"""

from labelaudit.mechanisms.base import *
from labelaudit.mechanisms.count_channels import *
from labelaudit.mechanisms.kinds import *
from labelaudit.mechanisms.paper import *
