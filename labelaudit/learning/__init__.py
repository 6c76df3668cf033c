"""Learning from what a mechanism releases: losses, networks, training, and estimates of eta.

Read `training` first, then `eta` and `calibration`. `figures` and `tables` serve the chapters on
real data, and the folder `sweep` that on privacy and utility. Nothing is imported here: estimates
of eta do without torch unless they use a network, and so do the tables and figures of a sweep.
"""
