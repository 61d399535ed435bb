"""The command line decides only what to run and how to show the result.

One file per command, each a thin layer over the library: parse, call, print. Tables are made in `observe/`.
The commands `bench` and `reproduce` are in the lab.

    main.py             finds and runs a command
    demo/               `tidegate demo`
    inspect.py          `tidegate inspect`
    checkpoint.py       `tidegate checkpoint copy`
    sift.py             `tidegate sift`
    watch.py            feeds and watches a running query
    arguments.py        kinds of arguments
    quiet_console.py    keeps Java's messages off the screen
"""
