"""The command line decides only what to run and how to say what came out.

One file per command (`tidegate demo`, `tidegate bench`, …), each a thin layer over the library: parse,
call, print. What is printed is put together under `report/`.
"""
