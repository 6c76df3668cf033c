"""Bounds on the advantage: the paper's with their constants, and the book's sharper ones.

Throughout, `bag_size` is the number of people in the whole bag. Where the paper writes a bag of
k + 1 (Lemma A.2 and after), its k is `bag_size - 1`. `p` is the mean prior and `mu` the mean of
eta (1 - eta). Arguments broadcast. A bound whose condition fails is infinite. Exact values are
included where a closed form or a short sum is known.
"""

from labelaudit.bounds.exact import *
from labelaudit.bounds.paper import *
from labelaudit.bounds.sharper import *
