"""Appendix C of the paper: how the experiments were set up."""
