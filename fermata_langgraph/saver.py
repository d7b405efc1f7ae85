"""`FermataSaver`: LangGraph's checkpoints in Fermata's store, where a second writer is refused and not lost.

Needs `requirements-langgraph.txt`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from django.conf import settings
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from psycopg_pool import ConnectionPool

from checkpoints.store import Cursor, Head
from fermata_langgraph import pending, threads
from fermata_langgraph.pending import Write
from fermata_langgraph.threads import Place, Reading, Saved
from runs.engine.connection import connection_parameters

# LangGraph hands what a reading's config holds on to every write that follows it, and keeps names of this form out of
# the metadata.
READING = "__fermata_reading"
KNOWN_HEADS = 256
DELTAS = "counters_since_delta_snapshot"


class FermataSaver(BaseCheckpointSaver[int]):
    """A LangGraph checkpointer. Made by `open`; may be used from several threads and event loops.

    Channel values that a step left alone are not stored again. `put` and `put_writes` raise `ConcurrentWriter` where
    somebody else wrote to the thread after it was read, and `HoldsCredential` for what must not be saved.
    """

    def __init__(self, pool: ConnectionPool, *, serde: SerializerProtocol | None = None) -> None:
        super().__init__(serde=serde)
        self._pool = pool
        self._heads: dict[UUID, Head] = {}

    @classmethod
    @contextmanager
    def open(cls, *, serde: SerializerProtocol | None = None, connections: int = 4) -> Iterator[FermataSaver]:
        """A saver in Django's database, with at most so many connections of its own."""
        with ConnectionPool(kwargs=connection_parameters(), min_size=1, max_size=connections) as pool:
            yield cls(pool, serde=serde)

    # --- reading ---------------------------------------------------------------------------------------------

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        place = _place(config)
        with self._transaction() as cursor:
            reading = threads.read_thread(cursor, place)
            saved = threads.find(cursor, place, get_checkpoint_id(config)) if reading else None
            return self._tuple(cursor, saved, reading) if saved else None

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        wanted = config["configurable"] if config else {}
        found: list[CheckpointTuple] = []
        with self._transaction() as cursor:
            for saved in threads.listed(
                cursor,
                thread_id=str(wanted["thread_id"]) if "thread_id" in wanted else None,
                namespace=wanted.get("checkpoint_ns"),
                checkpoint_id=get_checkpoint_id(config) if config else None,
                before=get_checkpoint_id(before) if before else None,
            ):
                if limit is not None and len(found) >= limit:
                    break
                metadata = self._loads(saved.position["metadata"])
                if all(metadata.get(key) == value for key, value in (filter or {}).items()):
                    found.append(self._tuple(cursor, saved, threads.read_thread(cursor, saved.place)))
        return iter(found)

    # --- writing ---------------------------------------------------------------------------------------------

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Raises ConcurrentWriter, HoldsCredential, SnapshotTooLarge."""
        place, reading, parent = _place(config), _reading(config), get_checkpoint_id(config)
        complete = get_checkpoint_metadata(config, metadata)
        rest = {key: value for key, value in checkpoint.items() if key != "channel_values"}
        saved = Saved(
            place=place,
            checkpoint_id=checkpoint["id"],
            maker=str(complete.get("run_id", "")),
            state={channel: self._dumps(value) for channel, value in checkpoint["channel_values"].items()},
            position={"parent": parent, "checkpoint": self._dumps(rest), "metadata": self._dumps(complete)},
        )
        with self._transaction() as cursor:
            if reading is None:
                seq = threads.extend(cursor, place, parent=parent, checkpoint_id=checkpoint["id"])
            else:
                seq = threads.follow(cursor, place, reading, checkpoints=1)
            head = threads.write(
                cursor,
                place,
                seq=seq,
                head=self._heads.get(place.run_id),
                saved=saved,
                limit=settings.FERMATA_SNAPSHOT_LIMIT,
            )
        self._remember(place, head)
        return _config(place, checkpoint["id"], reading)

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        place, reading = _place(config), _reading(config)
        made = [
            Write(WRITES_IDX_MAP.get(channel, idx), task_id, task_path, channel, *self._dumps(value))
            for idx, (channel, value) in enumerate(writes)
        ]
        with self._transaction() as cursor:
            # Who read nothing began the thread, and its tasks may be ahead of its own first checkpoint.
            if reading is not None:
                threads.follow(cursor, place, reading, checkpoints=0)
            pending.add(cursor, place.run_id, config["configurable"]["checkpoint_id"], made)

    # --- keeping house ---------------------------------------------------------------------------------------

    def delete_thread(self, thread_id: str) -> None:
        self.prune([thread_id], strategy="delete")

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        with self._transaction() as cursor:
            threads.delete_made_by(cursor, run_ids)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Raises ConcurrentWriter where the target is being written."""
        with self._transaction() as cursor:
            for saved in reversed(list(threads.listed(cursor, thread_id=source_thread_id))):
                target = Place(target_thread_id, saved.place.namespace)
                seq = threads.extend(cursor, target, parent=None, checkpoint_id=saved.checkpoint_id)
                threads.write(cursor, target, seq=seq, head=None, saved=saved, limit=settings.FERMATA_SNAPSHOT_LIMIT)
                made = pending.read(cursor, saved.place.run_id, saved.checkpoint_id)
                pending.add(cursor, target.run_id, saved.checkpoint_id, made)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """`keep_latest` or `delete`. Keeps all of a namespace whose newest checkpoint holds only what changed."""
        if strategy not in ("keep_latest", "delete"):
            raise ValueError(f"strategy must be keep_latest or delete, not {strategy!r}")
        with self._transaction() as cursor:
            for place in threads.places(cursor, thread_ids):
                if strategy == "delete":
                    threads.delete(cursor, place.run_id)
                elif not self._needs_ancestors(threads.find(cursor, place, None)):
                    threads.delete_but_newest(cursor, place.run_id)

    # --- for event loops -------------------------------------------------------------------------------------

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        for found in await asyncio.to_thread(self.list, config, filter=filter, before=before, limit=limit):
            yield found

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        await asyncio.to_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await asyncio.to_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await asyncio.to_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        await asyncio.to_thread(self.prune, thread_ids, strategy=strategy)

    # --- inside ----------------------------------------------------------------------------------------------

    @contextmanager
    def _transaction(self) -> Iterator[Cursor]:
        with self._pool.connection() as connection, connection.transaction(), connection.cursor() as cursor:
            yield cursor

    def _dumps(self, value: Any) -> tuple[str, bytes]:
        return self.serde.dumps_typed(value)

    def _loads(self, dumped: Any) -> Any:
        return self.serde.loads_typed(dumped)

    def _tuple(self, cursor: Cursor, saved: Saved, reading: Reading | None) -> CheckpointTuple:
        parent = saved.position["parent"]
        checkpoint: Checkpoint = self._loads(saved.position["checkpoint"])
        checkpoint["channel_values"] = {channel: self._loads(value) for channel, value in saved.state.items()}
        found = pending.read(cursor, saved.place.run_id, saved.checkpoint_id)
        return CheckpointTuple(
            config=_config(saved.place, saved.checkpoint_id, reading),
            checkpoint=checkpoint,
            metadata=self._loads(saved.position["metadata"]),
            parent_config=_config(saved.place, parent, reading) if parent else None,
            pending_writes=[(write.task_id, write.channel, self._loads((write.kind, write.data))) for write in found],
        )

    def _needs_ancestors(self, newest: Saved | None) -> bool:
        return newest is not None and DELTAS in self._loads(newest.position["metadata"])

    def _remember(self, place: Place, head: Head) -> None:
        self._heads.pop(place.run_id, None)
        self._heads[place.run_id] = head
        if len(self._heads) > KNOWN_HEADS:
            self._heads.pop(next(iter(self._heads)), None)


def _place(config: RunnableConfig) -> Place:
    configurable = config["configurable"]
    return Place(str(configurable["thread_id"]), configurable.get("checkpoint_ns", ""))


def _reading(config: RunnableConfig) -> Reading | None:
    """The reading that a write follows; one that a subgraph inherits is of its parent's namespace, and none of its."""
    text = config["configurable"].get(READING)
    reading = Reading.parse(text) if text else None
    return reading if reading is not None and reading.run_id == _place(config).run_id else None


def _config(place: Place, checkpoint_id: str, reading: Reading | None) -> RunnableConfig:
    configurable = {
        "thread_id": place.thread_id,
        "checkpoint_ns": place.namespace,
        "checkpoint_id": checkpoint_id,
    }
    return {"configurable": configurable if reading is None else {**configurable, READING: str(reading)}}
