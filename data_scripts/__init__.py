"""One script per data set: fetch the published file, prepare arrays from it, verify them.

A new set needs an entry in `labelaudit/datasets/catalogue.yml` and a script `data_scripts/NAME.py`.
The script's function `layout_of` says which columns a file has and how to read them.
"""
