"""Bounds on the advantage: the paper's with their constants, and the book's sharper ones.

Throughout, `bag_size` is the number of people in the whole bag. Where the paper writes a bag of
k + 1 (Lemma A.2 and after), its k is `bag_size - 1`. `p` is the mean prior and `mu` the mean of
eta (1 - eta). Arguments broadcast. A bound whose condition fails is infinite. Exact values are
included where a closed form or a short sum is known.
"""

from labelaudit.bounds.exact import (
    debiased_variance,
    independent_advantage,
    response_advantage,
    revealed_probability,
    two_point_advantage,
)
from labelaudit.bounds.paper import (
    LEMMA_CONSTANT,
    general_form,
    independent_bernstein_bound,
    independent_gap_bound,
    independent_root_bound,
    individual_form,
    individual_lemma_bound,
    label_dp_bound,
    lemma_bound,
    multiplicative_tail_bound,
    tail_probability,
    tail_threshold,
)
from labelaudit.bounds.sharper import (
    BAG_CONSTANT,
    BESSEL_CONSTANT,
    aggregation_bound,
    bag_bounds,
    bag_gap_bounds,
    coin_worth_bounds,
    density_limit,
    gap_bound,
    gap_rate,
    independent_tilted_bound,
    individual_bound,
    label_dp_classes_bound,
    label_dp_half_bound,
    noisy_bag_bounds,
    noisy_bound,
    root_bound,
    tail_bound,
    uniform_advantage_bounds,
)

__all__ = ["debiased_variance", "independent_advantage", "response_advantage"]
__all__ += ["revealed_probability", "two_point_advantage"]
__all__ += ["LEMMA_CONSTANT", "general_form", "independent_bernstein_bound"]
__all__ += ["independent_gap_bound", "independent_root_bound", "individual_form"]
__all__ += ["individual_lemma_bound", "label_dp_bound", "lemma_bound", "multiplicative_tail_bound"]
__all__ += ["tail_probability", "tail_threshold"]
__all__ += ["BAG_CONSTANT", "BESSEL_CONSTANT", "aggregation_bound", "bag_bounds", "bag_gap_bounds"]
__all__ += ["coin_worth_bounds", "density_limit", "gap_bound", "gap_rate"]
__all__ += ["independent_tilted_bound", "individual_bound", "label_dp_classes_bound"]
__all__ += ["label_dp_half_bound", "noisy_bag_bounds", "noisy_bound", "root_bound", "tail_bound"]
__all__ += ["uniform_advantage_bounds"]
