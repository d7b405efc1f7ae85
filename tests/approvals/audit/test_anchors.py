from pathlib import Path

from approvals.audit import anchors
from approvals.audit.anchors import Anchored

FIRST, SECOND = Anchored(1, b"a" * 32), Anchored(2, b"b" * 32)


def test_it_reads_what_it_wrote(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "anchor"
    anchors.write(path, [FIRST])
    anchors.write(path, [SECOND])
    assert list(anchors.read(path)) == [FIRST, SECOND]
    assert anchors.newest(path) == SECOND


def test_no_file_has_no_lines(tmp_path: Path) -> None:
    assert list(anchors.read(tmp_path / "none")) == []
    assert anchors.newest(tmp_path / "none") is None


def test_a_torn_line_is_left_out_and_does_not_spoil_the_next(tmp_path: Path) -> None:
    path = tmp_path / "anchor"
    anchors.write(path, [FIRST])
    with path.open("a") as file:
        file.write("2 6262")
    assert anchors.newest(path) == FIRST
    anchors.write(path, [SECOND])
    assert list(anchors.read(path)) == [FIRST, SECOND]


def test_the_newest_is_found_in_a_long_file(tmp_path: Path) -> None:
    path = tmp_path / "anchor"
    anchors.write(path, [Anchored(no, bytes(32)) for no in range(1, 500)])
    assert anchors.newest(path) == Anchored(499, bytes(32))
