"""From a level to a decision, one shedding mechanism per file.

A level comes from `goal/`: the probe ratio of a join, the admit ratio of a match, the drop ratio of windows.
Most mechanisms have `decide`, for the next plan, and `learn`, from the last batch.

    join_shedding.py          joins: the probe ratio becomes parts of basic windows
    join_policies.py          the policies by name; policy.py: their protocol and the baselines
    selective.py              the policy `selective`, ours; adaptive.py: `adaptive`, the paper's
    content.py                when rows choose by content what they probe
    work_ahead.py             what each basic window will cost the next batch
    paper_rate.py             the paper's own rule for the probe ratio (`rate="paper"`)
    state_limit.py            stored rows that are given up to stay within a number of bytes
    sifting.py                matches: the admit ratio; sifter_choice.py: when a new sifter is made
    window_dropping.py        windows: which ones are dropped
    sampling.py               approximate windows: which rows are kept
    stale_rows.py             the last resort: rows too old to be let in
    partial_aggregation.py    where rows of a window are aggregated; it loses nothing
"""
