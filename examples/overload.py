from pyspark.sql import SparkSession

import tidegate as tg

spark = SparkSession.builder.master("local[2]").getOrCreate()


def positions(name):  # 6,000 rows a second after 45 seconds
    rows = spark.readStream.format("rate").options(rowsPerSecond=6000, rampUpTime="45s").load()
    places = (f"pmod(hash(value, '{name}{c}'), {n}) AS {c}" for c, n in [("zone", 4), ("x", 999), ("y", 999)])
    released = "date_trunc('second', timestamp) + INTERVAL 1 SECOND AS released"  # once a second
    rows = rows.selectExpr("timestamp AS ts", released, "value AS id", *places)
    return tg.stream(rows, name=name, time="ts", lateness="1 second", available_at="released")


def close(order, cab):  # pandas, one line per candidate pair
    return (order.x - cab.x) ** 2 + (order.y - cab.y) ** 2 < 1000


orders, cabs = positions("orders"), positions("cabs")
near = orders.join(cabs, on=["zone", tg.pairwise(close, ["x", "y"])], within="10 seconds", name="near")
out, goal = near.write_to("parquet", "out/near"), tg.Goal(latency="2 seconds")
with tg.start(out, checkpoint="ck", trigger="1 second", goal=goal) as query:
    query.await_termination(75)
print(query.receipts(by="total"))
