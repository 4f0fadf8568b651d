"""Drafts a definitions file from a sample of events: what each line says, and why."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from railgun.catalog.model import ALL
from railgun.draft.changes import Changes, changes_of
from railgun.draft.envelopes import Envelope, envelope_of
from railgun.draft.errors import DraftError
from railgun.draft.fields import Candidate, candidates_of
from railgun.draft.metrics import Metrics, amount_of, metrics_of
from railgun.draft.observed import Observations
from railgun.draft.roles import Role, id_role, partitioner_role, time_role
from railgun.draft.sample import Sample
from railgun.draft.times import Disorder, disorder_of, times_ms
from railgun.draft.toml_text import inline_table, quoted, strings, words_in_comment
from railgun.draft.types import share_text
from railgun.wording import counted, listed

ACTIVE_MAX = 30
_SHOWN_MAX, _OTHERS, _REASONS_MAX = 200, 3, 5


@dataclass(frozen=True, slots=True)
class Draft:
    """A definitions file that was drafted.

    text: of the file.
    stream: its name.
    events: how many it was drafted from.
    fields: how many it has, comments apart.
    refused: how many records of the sample are no events, or would be refused for their time: for want of it, or as it
        is still to come.
    """

    text: str
    stream: str
    events: int
    fields: int
    refused: int


def draft(sample: Sample, stream: str, now_ms: int) -> Draft:
    """Draft a definitions file. now_ms: the present time, beyond which an event is refused.

    Raises DraftError if no field can be made of the events.
    """
    made = _Drafting(sample, stream, now_ms)
    return Draft("\n".join(made.lines()) + "\n", stream, made.total, len(made.active), made.refused)


class _Drafting:
    def __init__(self, sample: Sample, stream: str, now_ms: int) -> None:
        self._envelope: Envelope = envelope_of(sample.documents)
        # Of files all is taken: there is no condition for them.
        is_selected = self._envelope.is_change and sample.is_topic
        self._changes: Changes | None = changes_of(sample, self._envelope) if is_selected else None
        sample = sample if self._changes is None else self._changes.sample
        self._sample, self._stream = sample, stream
        self._observed = Observations(sample, self._envelope)
        self.total = self._observed.total
        places = self._observed.places()
        self._all = candidates_of(places, self._observed.of_records, self.total) if self.total else []
        self._time: Role = time_role(self._all, self._envelope, now_ms)
        self._id: Role = id_role(self._all)
        likely_id = self._id.taken
        self._key: Role = partitioner_role(self._all, (self._time.taken, likely_id))
        # What refuses some events anyway does not refuse more of them if there are several.
        taken = [role.taken for role in (self._time, self._id, self._key) if role.taken is not None]
        broken = frozenset[int]().union(*(each.place.misfits for each in taken))
        self._sound = [each for each in self._all if each.place.misfits <= broken]
        self._operation = self._operation_field()
        self._amount = amount_of(self._sound)
        self.active = self._chosen()
        if all(each.is_beside for each in self.active):
            raise DraftError(
                f"{sample.place}: no field can be made of its {counted(self.total, 'event')}; events are JSON objects "
                "with text, numbers, times or booleans in them"
            )
        self._metrics = self._library()
        self._disorder: Disorder | None = None
        self.refused = sum(sample.unread.values())
        if self._time.taken is not None:
            self._disorder = disorder_of(self._time.taken, sample.lanes)
            broken |= set(range(self.total)) - set(self._time.taken.place.rows)
            self.refused += sum(time > now_ms for time in times_ms(self._time.taken))
        self.refused += len(broken)

    def _operation_field(self) -> Candidate | None:
        """Return the field that says what was done with a row; None if the events are no changes."""
        if not self._envelope.is_change:
            return None
        place = self._envelope.operation
        fit = [each for each in self._sound if each.path.steps == place and each.choice.type == "string"]
        return fit[0] if fit else None

    def _chosen(self) -> list[Candidate]:
        """Return the fields that are no comments, in the order in which events have them. One that would refuse events
        of itself is not among them, unless it has a role.
        """
        roles = (self._time, self._id, self._key)
        wanted = [self._operation, *(role.taken for role in roles), self._amount]
        others = [other for role in roles for other in role.others[:_OTHERS] if other in self._sound]
        wanted += [each for each in (*others, *self._sound) if each.may_be_active]
        first = list({each.name: each for each in wanted if each is not None}.values())[:ACTIVE_MAX]
        return [each for each in self._all if each in first]

    def _library(self) -> Metrics:
        others = [each for each in self._key.others[:_OTHERS] if each in self.active]
        used = {each.name for each in self._all}
        amount = self._amount if self._amount in self.active else None
        return metrics_of(self._stream, self._key.taken, amount, others, self._time.taken, used)

    # --- the file ------------------------------------------------------------------------------------

    def lines(self) -> Iterator[str]:
        """Yield the lines of the file."""
        yield from self._head()
        yield f"[streams.{self._stream}]"
        yield self._time_line()
        yield self._id_line()
        yield self._partitioners_line()
        yield self._lateness_line()
        yield ""
        yield f"[streams.{self._stream}.fields]"
        yield from map(_field_line, self.active)
        yield from self._left_out()
        yield ""
        if self._sample.is_topic:
            yield from self._input()
        yield from self._metric_lines()

    def _head(self) -> Iterator[str]:
        sample, unread = self._sample, sum(self._sample.unread.values())
        yield _comment(
            f"Drafted by railgun init from {counted(self.total, 'event')} of {sample.place}. Edit it: it is a guess."
        )
        yield _comment("Shares and counts are of these events. No value of an event is in this file.")
        if unread:
            yield _comment(
                f"{counted(unread, 'record')} beside them could not be read. {_reasons(sample.unread)}"
            )
        if sample.left_out:
            names = listed([name or "''" for name in sample.left_out])
            yield _comment(f"Columns without a name of their own cannot be read, and are left out: {names}")
        if self._envelope.note:
            yield _comment(f"The {self._envelope.note}.")
        if self._observed.root.value_keys:
            yield _comment("Keys that seem to be values are left out.")
        yield ""

    def _time_line(self) -> str:
        taken = self._time.taken
        near = [each.name for each in self._all if each.choice.is_near_time]
        lacking = f"{listed(near, _OTHERS)} cannot be it, as times there lack an offset" if near else ""
        if taken is None:
            why = lacking or "nothing seems to be a time"
            return _comment('time = "..."', f"{why}: events have that of their arrival")
        notes = [f"{taken.choice.why}; in {share_text(taken.count, self.total)}"]
        if not taken.is_complete:
            notes.append("events without it are refused")
        if taken.is_beside:
            notes += ["of the record: such events come from the topic alone", lacking]
        return _line(f"time = {quoted(taken.name)}", *notes, self._time.others_text)

    def _id_line(self) -> str:
        taken, others = self._id.taken, self._id.others_text
        rule = "an event whose id has come before does not count"
        if taken is None:
            return _comment('id = "..."', "no field has the name of an id and differs in all events", others)
        text, why = f"id = {quoted(taken.name)}", f"different in all {counted(self.total, 'event')}"
        if self._sample.is_topic:
            return _comment(text, f"{why}; is it so in all of the topic? {rule}", others)
        return _line(text, f"{why}; {rule}", others)

    def _partitioners_line(self) -> str:
        taken, others = self._key.taken, self._key.others_text
        if taken is None:
            why = "no field has values that come again: all events are in one task"
            return _line(f"partitioners = {strings([ALL])}", why)
        notes = [f"{taken.place.distinct:,} different in {counted(taken.count, 'event')}"]
        notes.append("metrics group by it; fixed once the stream is created")
        if taken.is_beside:
            notes.append("of the record: such events come from the topic alone")
        return _line(f"partitioners = {strings([taken.name])}", *notes, others)

    def _lateness_line(self) -> str:
        disorder = self._disorder
        if disorder is None:
            return _comment('lateness = "5s"', "the default")
        notes = [disorder.note]
        if disorder.is_unordered:
            notes.append("they are not in the order of time: sort them, if that is not so in earnest")
        return _line(f"lateness = {quoted(disorder.lateness)}", *notes)

    def _left_out(self) -> Iterator[str]:
        rest = [each for each in self._all if each not in self.active]
        omitted = len(rest) - _SHOWN_MAX
        for each in rest[:_SHOWN_MAX]:
            yield _commented_field(each)
        if omitted > 0:
            yield _comment(f"... and {omitted:,} more")
        if self._observed.omitted:
            yield _comment("Paths that are too deep or too many are left out.")

    def _input(self) -> Iterator[str]:
        yield f"[streams.{self._stream}.input]"
        yield f"topics = {strings([self._sample.place])}"
        if self._changes is not None and self._operation is not None:
            condition = self._changes.condition(self._operation.name)
            yield _line(f"where = {quoted(condition)}", self._changes.note)
        yield _comment('start = "latest"', "without it the topic is read from its oldest record on")
        yield ""

    def _metric_lines(self) -> Iterator[str]:
        if self._changes is None and self._operation is not None:
            new = f"WHERE {self._operation.name} IN ('c', 'r')"
            yield _comment(f"These are of all changes; metrics of new rows alone have {new}.")
        for sql in self._metrics.active:
            yield from ("[[metrics]]", f"sql = {quoted(sql)}")
        yield ""
        yield _comment("More of the library (docs/metric-library.md); take the # away from what is wanted:")
        for sql in self._metrics.others:
            yield from ("# [[metrics]]", f"# sql = {quoted(sql)}")


def _reasons(unread: Mapping[str, int]) -> str:
    """Return why records could not be read, what most are of first. There may be as many reasons as records."""
    ordered = sorted(unread.items(), key=lambda each: -each[1])
    said = [f"{count:,}: {why}" for why, count in ordered[:_REASONS_MAX]]
    others = sum(count for _, count in ordered[_REASONS_MAX:])
    return "; ".join([*said, f"{others:,}: for other reasons"] if others else said)


def _line(text: str, *notes: str) -> str:
    said = words_in_comment("; ".join(filter(None, notes)))
    return f"{text}  # {said}" if said else text


def _comment(text: str, *notes: str) -> str:
    return "# " + _line(text if notes else words_in_comment(text), *notes)


def _definition(field: Candidate) -> str:
    said = {"type": field.choice.type}
    if field.path.of_record or field.path.steps != (field.name,):
        said["from"] = field.path.text
    if field.choice.unit:
        said["unit"] = field.choice.unit
    return f"{field.name} = {quoted(said['type']) if len(said) == 1 else inline_table(said)}"


def _field_line(field: Candidate) -> str:
    return _line(_definition(field), field.note)


def _commented_field(field: Candidate) -> str:
    if field.choice.type:
        return _comment(_definition(field), field.note)
    return _comment(f"{field.path.text}: {field.note}")
