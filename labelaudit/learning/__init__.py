"""Learning from what a mechanism releases: losses, networks, training, and estimates of eta.

Nothing is imported here, so that what does without torch can: `eta` and `calibration`, but for
its network, and of a sweep all but the trainings themselves.
"""
