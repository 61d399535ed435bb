"""`Checkpoint`: everything a query keeps, under one root.

    <root>/spark/                      Spark's own offsets and commits (see `spark_log`)
    <root>/receipts/                   what each batch lost: JSON lines, readable by any tool; added up
                                       in `receipts_by_minute/` and `receipts_by_hour/`
    <root>/tidegate/lock               the run that holds the checkpoint
                    names.json         the names that it began with, until a manifest has them
                    manifests/         what each batch left behind
                    plans/             what was decided for each batch, before it ran
                    segments/<operator>/<batch>-<instance>-<attempt>.arrow
                    telemetry/         what each batch reported

The life of a run: `open` → `recover` → for each batch (plan, run, `commit`) → `close`.
"""

from __future__ import annotations

from tidegate.errors import CheckpointInUse, StateError, TidegateError
from tidegate.model.graph import FlowNames
from tidegate.model.manifest import Manifest
from tidegate.state.lock import Lock, hold
from tidegate.state.manifest_log import ManifestLog
from tidegate.state.plan_log import PlanLog
from tidegate.state.receipt_log import ReceiptLog
from tidegate.state.recovery import check_flow, drop_unreferenced, sweep, sweep_behind
from tidegate.state.spark_log import SparkLog, refuse_lost, refuse_other
from tidegate.state.store.local import LocalStore
from tidegate.state.store.sealed import seal, unseal
from tidegate.state.store.store import Store, open_store
from tidegate.state.telemetry_log import TelemetryLog

__all__ = ["Checkpoint", "check_flow"]

#: The file with the names that a query began with.
FIRST_NAMES = "names.json"
#: Manifests and plans kept for inspection. The newest one alone is needed to recover.
KEEP_BATCHES = 8
#: Old files are purged once in so many batches: each purge lists three folders.
PURGE_EVERY = 8
#: Files of attempts that failed while the query runs are looked for once in so many batches: all segments
#: are listed for it.
SWEEP_EVERY = 512


class Checkpoint:
    """The state of one query. Reading needs no lock; `recover` and `commit` do."""

    def __init__(self, url: str) -> None:
        self._root = url.rstrip("/")
        self.store: Store = self._opened("tidegate")
        self.manifests: ManifestLog = ManifestLog(self.store)
        self.plans: PlanLog = PlanLog(self.store)
        self.telemetry: TelemetryLog = TelemetryLog(self.store)
        folders = ("receipts", "receipts_by_minute", "receipts_by_hour")
        self.receipts: ReceiptLog = ReceiptLog(*map(self._opened, folders))
        self.spark_log: SparkLog = SparkLog(self._opened("spark"))
        self._lock: Lock | None = None
        #: The state as of the last commit or recovery; whose files the next commit may let go of.
        self._current: Manifest | None = None

    def _opened(self, folder: str) -> Store:
        try:
            return open_store(f"{self._root}/{folder}")
        except TidegateError:
            raise
        except Exception as error:  # file systems raise errors of their own
            raise StateError(
                f"The checkpoint {self._root} cannot be reached",
                code="CHECKPOINT_UNREACHABLE",
                got=f"{type(error).__name__}: {error}",
                why="The state is stored there, and nothing has started",
                do="Check the address, and install the fsspec package of its file system (s3fs for s3://)",
            ) from error

    @property
    def spark_path(self) -> str:
        """Where Spark keeps its own part; with a scheme, so that Spark's default is not asked."""
        if isinstance(self.store, LocalStore):
            return f"file://{self.store.root.removesuffix('/tidegate')}/spark"
        return f"{self._root}/spark"

    @property
    def current(self) -> Manifest | None:
        """The state as of the last commit or recovery of this run."""
        return self._current

    def open(self, owner: str) -> None:
        """Take the lock; CheckpointInUse when another run has it, or this object holds it already."""
        try:
            self._lock = hold(self.store, owner)
        except TidegateError:
            raise
        except Exception as error:  # file systems raise errors of their own
            raise StateError(
                f"The checkpoint {self._root} cannot be written",
                code="CHECKPOINT_UNWRITABLE",
                got=f"{type(error).__name__}: {error}",
                why="The state is stored there, and nothing has started",
                do="Pass a folder that this user may create and write as checkpoint=…",
            ) from error

    def check(self) -> None:
        """CheckpointInUse when another run has taken over; costs microseconds, so it is asked often."""
        self._held().check(quick=True)

    @property
    def token(self) -> str:
        """Names this run: no other has it."""
        return self._held().token

    @property
    def run(self) -> int:
        """A number of this run that is larger than that of every earlier one."""
        return self._held().run

    def close(self) -> None:
        """Give the lock back; a second call does nothing."""
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.release()

    def recover(self) -> Manifest | None:
        """The state to go on from; None for a new query.

        1. Make sure that no other run is active. 2. Load the newest manifest, or fail: never an older one.
        3. Make sure that Spark's log has the batch that the manifest has and all that it refers to, and has
        done none with rows after it. 4. Delete what failed attempts left behind; safe only because no task of
        ours is running yet.
        """
        self._held().check()
        self._current = self.manifests.load_latest()
        if self._current is not None:
            taken = self._current.spark_batch
            refuse_other(taken, self.spark_log.batch(taken.number))
        refuse_lost(self.spark_log, self._current)
        if self._current is not None:
            self.spark_log.check_whole(self._current.spark_batch)
        sweep(self.store, self._current)
        self.receipts.tidy()
        return self._current

    def first_names(self) -> FlowNames | None:
        """The names with which Spark's log was begun; None before that. Later, the manifest has them."""
        if not self.spark_log.batch(0).checksum or not self.store.exists(FIRST_NAMES):
            return None
        return unseal(self.store.read(FIRST_NAMES), "names", 0, FIRST_NAMES, FlowNames)

    def begin(self, names: FlowNames) -> None:
        """Write down the names of a new query, before Spark reads a stream."""
        self._held().check()
        self.store.write_atomic(FIRST_NAMES, seal("names", 0, names))

    def commit(self, manifest: Manifest) -> list[str]:
        """Make a batch done; the segment files that were deleted because of it.

        The order makes it safe to die anywhere: before step 2 the batch runs again under its plan, from then
        on it is done; what steps 4 and 5 leave behind, the next `recover` or purge takes away.
        """
        lock = self._held()
        # 1. Another run may have taken over while our tasks were busy.
        lock.check()
        # 2. The one step by which the batch becomes done. It fails if another run has done it.
        self.manifests.commit(manifest, lock.token)
        before, self._current = self._current, manifest
        # 3. A run that was halted before step 2 for many batches finds the name free again: the other run
        # has purged its manifest. Whatever still holds the lock now held it during step 2.
        lock.check()
        # 4. Only now are the files of the old state not needed any more: every later run starts from here.
        deleted = drop_unreferenced(self.store, before.pieces if before else (), manifest.pieces)
        # 5. History.
        if manifest.batch % PURGE_EVERY == 0:
            self.manifests.purge(KEEP_BATCHES)
            self.plans.purge(manifest.batch + 1 - KEEP_BATCHES)
            self.telemetry.purge()
        if manifest.batch % SWEEP_EVERY == 0:
            sweep_behind(self.store, manifest)
        return deleted

    def _held(self) -> Lock:
        if self._lock is None:
            raise CheckpointInUse(
                f"The checkpoint was used before it was opened: {self.store.url}",
                code="INTERNAL_CHECKPOINT_NOT_OPEN",
                why="Without the lock, another run could write to it",
            )
        return self._lock
