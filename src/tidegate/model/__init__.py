"""The values that pass between parts: typed, frozen, JSON. Nothing here decides or reads files.

plan.py         what a batch will do; skip_plan.py: the parts of basic windows that a join probes
manifest.py     what a batch left behind
reports.py      what tasks report
progress.py     what a batch did, for people and programs
receipts.py     what became of rows and results, and the lines of their log
pieces.py       where stored rows are; piece_index.py: what is found among very many of them
routing.py      which instance stores and probes which rows
debts.py        skipped pairs, and their repair
graph.py        the flow as names and traits
samples.py      rows that passed a sifter as samples
times.py        the ends of event time, and the sides of a join
json_values.py  names for JSON objects without a class of their own
codec.py        all of these as JSON and back, with the format version of checkpoints
"""
