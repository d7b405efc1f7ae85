"""What an earlier version saved can be read, and the format does not change by accident."""

import pytest

from checkpoints.codec import decode
from checkpoints.codec.encoding import packed
from checkpoints.codec.frames import unframed
from tests.checkpoints.golden.corpus import FOLDER, VALUES, file_for
from tests.checkpoints.strategies import described


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.bin")), ids=lambda file: file.name)
def test_it_reads_what_every_version_wrote(file):
    name = file.name.split(".")[0]
    assert described(decode(file.read_bytes())) == described(VALUES[name])


@pytest.mark.parametrize("name", VALUES)
def test_it_writes_what_the_newest_version_wrote(name):
    assert packed(VALUES[name]) == unframed(file_for(name).read_bytes(), what=name)
