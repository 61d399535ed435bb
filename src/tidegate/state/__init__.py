"""State keeps what a query remembers between two batches, and finds it again after a crash.

Nothing is pickled: JSON and Arrow only. No pyspark here.

    checkpoint.py       everything a query keeps, under one root
    plan_log.py         plans are written here, before their batch runs
    manifest_log.py     what each batch left behind; the newest manifest is the state
    spark_log.py        which batch of Spark is in which commit
    segments.py         stored rows: immutable Arrow files
    telemetry_log.py    progress of batches
    receipt_log.py      receipts by batch, minute and hour; sealed_lines.py: their files
    copying.py          copies a checkpoint, also of a running query
    recovery.py         deletes what no manifest names, and refuses a checkpoint of another flow
    lock.py             one run at a time; lease.py: the same on object stores; holder.py: which run has it
    store/              blobs on any file system: the only way to the disk
"""
