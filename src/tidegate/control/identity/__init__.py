"""What a change of the flow between two runs means for the state: names, and parts that come and go.

renames.py        which names of a checkpoint are other names now
translation.py    manifests and plans under other names
flow_change.py    what begins and what ends
lacking.py        what cannot begin yet, because rows that it needs were left out
"""
