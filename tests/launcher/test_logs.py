"""What the supervisor shows of the programs' logs."""

from pathlib import Path

import pytest

from fermata.launcher import logs
from fermata.launcher.logs import Log


def test_it_shows_whole_lines_and_only_new_ones(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "web.log").write_text("of an earlier start\n")
    log = Log(tmp_path / "web.log", echo=True)
    with log.open() as output:
        output.write(b"one\ntw")
        output.flush()
        log.show_new()
        assert capfd.readouterr().out == "web      | one\n"
        output.write(b"o\n\xff\n")
        output.flush()
        log.show_new()
        assert capfd.readouterr().out == "web      | two\nweb      | \ufffd\n"


def test_a_log_that_is_not_for_the_terminal_is_only_kept(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = Log(tmp_path / "postgres.log", echo=False)
    with log.open() as output:
        output.write(b"one\n")
    log.show_new()
    assert capfd.readouterr().out == ""
    assert (tmp_path / "postgres.log").read_text() == "one\n"


def test_a_large_log_moves_aside_under_its_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "LARGEST", 10)
    log = Log(tmp_path / "web.log", echo=False)
    with log.open() as output:
        output.write(b"more than ten\n")
        output.flush()
        log.show_new()
        output.write(b"after\n")
    assert (tmp_path / "web.log").read_bytes() == b"after\n"
    assert (tmp_path / "web.log.1").read_bytes() == b"more than ten\n"


def test_last_words_are_the_reason_and_not_the_farewell(tmp_path: Path) -> None:
    log = Log(tmp_path / "postgres.log", echo=False)
    assert log.last_words() == ""
    reason = 'FATAL:  could not write lock file "postmaster.pid": No space left on device'
    with log.open() as output:
        output.write(f"LOG:  starting\n{reason}\nLOG:  database system is shut down\n\n".encode())
    assert log.last_words() == reason


def test_logs_are_nobody_elses(tmp_path: Path) -> None:
    Log(tmp_path / "web.log", echo=True).open().close()
    assert (tmp_path / "web.log").stat().st_mode & 0o777 == 0o600
