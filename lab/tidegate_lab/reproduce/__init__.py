"""Experiments behind `tidegate reproduce`: a paper's figures again, on the stages under a simulated clock.

experiment.py   what every experiment is made of: figures, lines "paper said / we measured", plots, bars
registry.py     the experiments by name; a new paper is one more entry and one more package here
"""
