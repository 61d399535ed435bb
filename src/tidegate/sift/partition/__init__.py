"""Partitioners: how the data space is cut into the regions of a sifter, one per file.

partitioners.py              the partitioners by name
cut_tree.py                  the growing tree of cuts, and the rules for cuts
null_patterns.py            rows without a number on some axes
uniform_grid.py              `ugrid`: equal volumes
equi_depth.py                `dedp`, `qedp`: equal numbers of rows or queries
flexible.py                  the greedy frame of the next three
approximate_grid.py          `volume`
approximate_equi_depth.py    `count`
qd_part.py                   `flexp`: QDPart
auto/                        `auto`: ours
"""
