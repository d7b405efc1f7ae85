"""A connection that sends statements now and has their answers later, by libpq's pipeline mode.

psycopg's own pipeline waits for all answers at once. Here a sync of its own follows each statement: it commits or
fails on its own, and the server begins the next one without waiting for anybody.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import count
from typing import Any

import psycopg
from psycopg import pq
from psycopg.abc import PQGen
from psycopg.abc import Transformer as AnyTransformer
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.pq.abc import PGresult
from psycopg.types.numeric import Int8Dumper
from psycopg.waiting import Ready, Wait

MOST_PREPARED = 100  # the one that was not used for longest goes


class SendingConnection(psycopg.Connection[Any]):
    """From `send` until its `answer` has been had, a connection can do nothing but these two."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._names = count()
        self._statements: OrderedDict[tuple[bytes, tuple[int, ...]], bytes] = OrderedDict()

    def send(self, query: bytes, params: Sequence[Any]) -> None:
        """Send one autocommit statement, with `%s` for its parameters. Raises psycopg's errors.

        It waits only where more is to be sent than the network takes at once.
        """
        values = self._dumper.dump_sequence(params, [PyFormat.AUTO] * len(params))
        types, formats = self._dumper.types or (), self._dumper.formats
        with self.lock:
            if self.pgconn.pipeline_status == pq.PipelineStatus.OFF:
                self.pgconn.enter_pipeline_mode()
            if self.prepare_threshold is None:
                self.pgconn.send_query_params(_numbered(query), values, types, formats)
            else:
                self.pgconn.send_query_prepared(self._prepare(query, types), values, formats)
            self.pgconn.pipeline_sync()
            self.wait(_sent(self.pgconn))

    def answer(self) -> tuple[Any, ...] | None:
        """Wait for the end of the first statement whose answer nobody has had: its first row, or None.

        Raises psycopg's errors. Once there is none left to wait for, the connection does everything again.
        """
        with self.lock:
            results = self.wait(_results(self.pgconn))
        for result in results:
            if result.status == pq.ExecStatus.FATAL_ERROR:
                self._statements.clear()  # what was to be prepared is perhaps not
                raise error_from_result(result, self.info.encoding)
        if not results[-1].ntuples:
            return None
        loader = Transformer(self)
        loader.set_pgresult(results[-1])
        return loader.load_row(0, tuple)

    def roll_back(self) -> None:
        """Leave a transaction. psycopg may deallocate all that is prepared when it sees one rolled back."""
        self.execute("ROLLBACK")
        if self._statements:
            self.execute("DEALLOCATE ALL")
            self._statements.clear()

    def end_sending(self) -> None:
        """Every answer was had."""
        if self.pgconn.pipeline_status != pq.PipelineStatus.OFF:
            self.pgconn.exit_pipeline_mode()

    @cached_property
    def _dumper(self) -> AnyTransformer:
        """Whole numbers are of one type, be they small or large: a statement is prepared for its parameters' types."""
        context = self.cursor()
        context.adapters.register_dumper(int, Int8Dumper)
        return Transformer(context)

    def _prepare(self, query: bytes, types: tuple[int, ...]) -> bytes:
        """Its name at the server, which is told to prepare it in the same breath, the first time."""
        name = self._statements.get((query, types))
        if name is not None:
            self._statements.move_to_end((query, types))
            return name
        if len(self._statements) >= MOST_PREPARED:
            _, oldest = self._statements.popitem(last=False)
            self.pgconn.send_close_prepared(oldest)
        name = self._statements[query, types] = b"fermata_%d" % next(self._names)
        self.pgconn.send_prepare(name, _numbered(query), types)
        return name


@lru_cache(256)
def _numbered(query: bytes) -> bytes:
    """`$1`, `$2`, … for each `%s`."""
    first, *rest = query.split(b"%s")
    return first + b"".join(b"$%d%s" % (number, text) for number, text in enumerate(rest, start=1))


def _sent(pgconn: pq.abc.PGconn) -> PQGen[None]:
    while pgconn.flush():
        if (ready := (yield Wait.RW)) and ready & Ready.R:
            pgconn.consume_input()


def _results(pgconn: pq.abc.PGconn) -> PQGen[list[PGresult]]:
    """What belongs to one statement: all there is until its sync."""
    found: list[PGresult | None] = []  # each command of it ends with None
    while True:
        while pgconn.is_busy():
            if (yield Wait.R):
                pgconn.consume_input()
        result = pgconn.get_result()
        if result is not None and result.status == pq.ExecStatus.PIPELINE_SYNC:
            return [result for result in found if result is not None]
        if pgconn.status == pq.ConnStatus.BAD or (result is None and found[-1:] in ([], [None])):
            raise psycopg.OperationalError("the connection was lost, or nothing was sent on it")
        found.append(result)
