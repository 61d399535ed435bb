"""Experiments of the selective join paper: its figures 3 to 9, and what our policy adds to them.

scenarios.py              a rush of rows on a machine that cannot keep up, and how outputs are compared
policies.py               the join settings that the paper compares, and ours
steady.py                 steady input at a fixed r
over_time.py              what the figures over time have in common
rate_figures.py           figures 3 to 5: rate adaptation against random drop
correlation_figures.py    figures 6 to 8: time correlation and join direction
basic_window_figure.py    figure 9: the size of basic windows, with and without an index
beyond.py                 the `selective` policy against one who knows, and where there is nothing to learn
news.py, news_figures.py  the same on real news items
experiment.py             all of them by name
"""
