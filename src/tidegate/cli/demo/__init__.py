"""`tidegate demo`: a made-up city, overloaded on purpose.

command.py     the command; flow.py: its query
city.py        the made-up streams; arrivals.py: as files that arrive
answers.py     the exact answer; judge.py: compares the output with it
outcome.py     the report at the end, also as JSON
timeline.py    both runs, second by second; plot.py: the picture
comparison.py  with --plot: the same join by Spark alone, and the picture of both
"""
