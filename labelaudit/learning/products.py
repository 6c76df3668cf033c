"""Which routine multiplies float32 matrices on a processor.

torch multiplies them by MKL, which leaves half the speed of AMD processors unused. A matmul
precision of "medium" takes oneDNN instead, and allows it bfloat16. Where the processor has units
for that (AMX) it would be used, and products would be wrong in the third digit: so a product with
a known result is computed first.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch

# "highest" keeps torch's own routine: set the variable to reproduce trainings digit by digit.
PRODUCTS = os.environ.get("LABELAUDIT_PRODUCTS", "auto")
# The largest error of an entry, relative to the largest entry. Float32 has 1e-6, bfloat16 2e-3.
TOLERANCE = 1e-4


@contextmanager
def fast_products(device: torch.device) -> Iterator[None]:
    """Inside, products on a processor take the faster routine; the precision is restored after.

    Another device, a precision that the caller has lowered, and `PRODUCTS` other than "auto" are
    left as they are.
    """
    before = torch.get_float32_matmul_precision()
    if device.type == "cpu" and before == "highest" and PRODUCTS == "auto" and _is_exact("medium"):
        torch.set_float32_matmul_precision("medium")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@cache
def _is_exact(precision: str) -> bool:
    """Whether this processor's products have the digits of float32 at a precision of torch."""
    generator = torch.Generator().manual_seed(0)
    left = torch.randn(512, 300, generator=generator)
    right = torch.randn(300, 300, generator=generator)
    truth = left.double() @ right.double()
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        error = (left @ right - truth).abs().max() / truth.abs().max()
    finally:
        torch.set_float32_matmul_precision(before)
    return bool(error <= TOLERANCE)
