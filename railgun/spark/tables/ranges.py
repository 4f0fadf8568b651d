"""Checks the ranges of offsets that options ask for against the log, before anything is read."""

import dataclasses
from collections.abc import Mapping

from railgun.spark.errors import OptionError
from railgun.spark.tables.options import ALL_PARTITIONS, ReadOptions
from railgun.spark.tables.record_log import Bounds, RecordLog
from reservoir.layout import INT64_MAX


def within_ranges(bounds: Bounds, options: ReadOptions, log: RecordLog) -> Bounds:
    """Return bounds that are narrowed to the requested times of appending.

    Raises OptionError for ranges that the log does not have. An offset for one partition must exist in it. An offset
    for all partitions must exist in one of them.
    """
    requested = options.bounds
    if requested.first_offset or requested.last_offset or requested.partitions:
        _check(requested, log.start_offsets(), log.end_offsets())
    if options.start_appended_ms is not None:
        firsts = log.offsets_at(options.start_appended_ms)
        firsts = {each: max(offset, bounds.offsets(each)[0]) for each, offset in firsts.items()}
        bounds = dataclasses.replace(bounds, first_offset=firsts)
    if options.end_appended_ms is not None:
        ends = log.offsets_at(options.end_appended_ms)
        lasts = {each: min(offset - 1, bounds.offsets(each)[1]) for each, offset in ends.items()}
        bounds = dataclasses.replace(bounds, last_offset=lasts)
    return bounds


def _check(requested: Bounds, starts: Mapping[int, int], ends: Mapping[int, int]) -> None:
    named = {
        *(requested.partitions or ()),
        *(requested.first_offset or ()),
        *(requested.last_offset or ()),
    } - {ALL_PARTITIONS}
    for partition in sorted(named - set(starts)):
        raise OptionError(f"there is no partition {partition}; the topic has 0 to {len(starts) - 1}")
    holds = [f"{each}: {starts[each]} to {ends[each] - 1}" for each in starts if ends[each] > starts[each]]
    held = f"what is there, by partition, is {', '.join(holds) or 'nothing'}"
    for option, offsets, is_end in (
        ("startOffset", requested.first_offset, False),
        ("endOffset", requested.last_offset, True),
    ):
        for partition, offset in (offsets or {}).items():
            where = starts if partition == ALL_PARTITIONS else (partition,)
            given = offset + is_end
            if given not in (0, INT64_MAX) and not any(starts[each] <= given <= ends[each] for each in where):
                raise OptionError(f"option {option}: {given} is out of the log; {held}")
