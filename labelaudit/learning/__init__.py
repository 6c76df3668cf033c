"""Learning from what a mechanism releases: losses, networks, training, and estimates of eta.

`training` is the place to begin, `eta` and `calibration` the next; `figures` and `judging` serve
the chapters on real data, and the sweep of chapter 12 has the folder `sweep`. Nothing is imported
here, so that what does without torch can: `eta` and `calibration`, but for its network, and of a
sweep all but the trainings themselves.
"""
