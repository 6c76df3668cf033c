"""Appendix D of the paper: proportion matching with noisy proportions."""
