"""Learning from what a mechanism releases: losses, networks, training, and estimates of eta.

Read `training` first, then `eta` and `calibration`. Nothing is imported here: estimates of eta do
without torch unless they use a network.
"""

__all__ = ["adam", "calibration", "eta", "learners", "likelihood", "losses", "models", "training"]
