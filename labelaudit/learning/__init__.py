"""Learning from what a mechanism releases: losses, networks, training, and estimates of eta.

Nothing is imported here: `losses`, `models` and `training` need torch, the rest does without.
"""
