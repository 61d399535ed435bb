"""The queries in DuckDB's SQL over the finished events: the results that every engine must give.

Written without the tricks of the streaming versions, so that they do not share their mistakes. The session's
time zone must be UTC.
"""

from __future__ import annotations

from tidegate_lab.bench.nexmark.queries.catalogue import CATEGORY, EUROS, QUERIES, SOME, STATES

#: The three streams, of the files that `{files}` names.
VIEWS = """
    create or replace view events as select * from read_parquet('{files}');
    create or replace view people as
        select date_time::timestamp as date_time, unnest(person) from events where event_type = 0;
    create or replace view auctions as
        select date_time::timestamp as opened, unnest(auction) from events where event_type = 1;
    create or replace view bids as
        select date_time::timestamp as date_time, unnest(bid) from events where event_type = 2;
    create or replace view open_auctions as
        select b.*, a.* exclude (extra, expires), expires::timestamp as expires,
            time_bucket(interval '10 seconds', b.date_time) as window_start
        from bids b join auctions a on b.auction = a.auction_id and b.date_time between opened and expires
"""
_TEN = "time_bucket(interval '10 seconds', date_time)"


def result_sql(name: str) -> str:
    """One row per row of the result, with the columns of the catalogue."""
    return f"select {', '.join(QUERIES[name].columns)} from ({_SQL[name]})"


_SQL = {
    "q0": "select * from bids",
    "q1": f"select * replace (cast({EUROS} * price as decimal(23, 3)) as price) from bids",
    "q2": f"select * from bids where auction % {SOME} = 0",
    "q3": f"""
        select * from auctions join people on seller = person_id
        where category = {CATEGORY} and state in {STATES}""",
    "q4": """
        select window_start, category, avg(final) as average from (
            select window_start, auction, category, max(price) as final
            from open_auctions group by all)
        group by all""",
    "q5": """
        with starts as (
            select auction, time_bucket(interval '2 seconds', date_time) - 2 * back * interval '1 second'
                as window_start from bids, range(5) r(back)),
        counts as (select window_start, auction, count(*) as bids from starts group by all)
        select * from counts qualify bids = max(bids) over (partition by window_start)""",
    "q7": f"select * from bids qualify price = max(price) over (partition by {_TEN})",
    "q8": f"""
        select *, {_TEN} as window_start from people where (person_id, window_start) in
            (select seller, time_bucket(interval '10 seconds', opened) from auctions)""",
    "q9": """
        select * from open_auctions qualify row_number() over (
            partition by window_start, auction order by price desc, date_time, bidder desc) = 1""",
    "q20": f"""
        select b.*, a.* exclude (extra, expires), expires::timestamp as expires
        from bids b join auctions a on auction = auction_id where category = {CATEGORY}""",
}
