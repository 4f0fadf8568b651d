"""The epochs of the newest records are known; those of records before are not."""

from railgun.host.leader_epochs import LeaderEpochs


def test_the_epoch_of_the_record_before_an_offset() -> None:
    epochs = LeaderEpochs(10, 3)
    epochs.note(10, 3)
    epochs.note(15, 4)
    assert [epochs.before(offset) for offset in (9, 10, 15, 16, 1_000)] == [-1, 3, 3, 4, 4]


def test_only_the_last_changes_are_kept() -> None:
    epochs = LeaderEpochs(0, -1)
    for number in range(100):
        epochs.note(10 * number, number)
    assert epochs.before(1_000) == 99
    assert epochs.before(990) == 98
    assert epochs.before(10) == -1
