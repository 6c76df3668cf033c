"""Learning from what a mechanism releases: losses, networks, training, and estimates of eta.

Read `training` first, then `eta` and `calibration`; the folder `sweep` serves the chapter on
privacy and utility. Nothing is imported here: estimates of eta do without torch unless they use a
network, and so do the tables of a sweep.
"""
