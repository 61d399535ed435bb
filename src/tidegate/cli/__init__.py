"""The command line: one module per command, a thin layer over the library that parses, calls and prints."""
