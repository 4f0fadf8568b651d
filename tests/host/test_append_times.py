"""When the record at a checkpoint was appended is known, or a time before that; never one after it."""

from railgun.host.append_times import AppendTimes


def test_the_time_of_the_records_that_were_read() -> None:
    times = AppendTimes()
    assert times.at(10) == 0
    times.note(10, 15, 50_000, 10)
    times.note(15, 20, 60_000, 10)
    assert [times.at(offset) for offset in (9, 10, 14, 15, 19)] == [0, 50_000, 50_000, 60_000, 60_000]
    # No record is there yet.
    assert times.at(20) == 0


def test_times_are_never_too_late_however_much_is_read_between_two_checkpoints() -> None:
    times = AppendTimes()
    appended = {offset: 1_000_000 + 700 * offset for offset in range(0, 100_000, 10)}
    needed = 0
    for offset, appended_ms in appended.items():
        times.note(offset, offset + 10, appended_ms, needed)
        if offset % 20_000 == 19_990:
            needed = offset
        assert 0 < times.at(needed) <= appended[needed], (offset, needed)
        assert 0 < times.at(offset) <= appended_ms
        assert len(times._since) <= 65
    # Just behind a checkpoint they are exact, but for a second.
    times.note(100_000, 100_010, 2_000_000_000, 100_000)
    assert times.at(100_000) == 2_000_000_000
