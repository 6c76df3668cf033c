"""Appendix A of the paper: the proofs behind the additive advantage."""
