"""Reads the newest dead letters of a stream from the broker."""

from frontend.access.masks import Masks
from frontend.backend.letters import FoundLetters, LetterRequest
from frontend.kafka.parts import Parts
from frontend.problems import UnknownStreamError, refusal
from frontend.topics.letter_reading import LetterReader
from frontend.url_query import wrong_parameter
from railgun.messaging.kafka.backwards import Bounds, read_backwards
from railgun.messaging.kafka.settings import KafkaSettings

# With a filter, more letters are looked at than are wanted.
_RECORDS, _BYTES = 10_000, 32 << 20


def newest_letters(
    settings: KafkaSettings, masks: Masks, stream: str, asked: LetterRequest, parts: Parts
) -> FoundLetters:
    """Return the newest letters of a stream. Raises ProblemError and TransportError."""
    catalog, topics = parts.intakes.now.catalog, parts.registry.topics
    entry = catalog.streams.get(stream)
    if entry is None:
        raise UnknownStreamError(stream, catalog.streams)
    is_masked = not masks.of(entry).shows_texts
    if is_masked and asked.reason is not None:
        # Who may guess at a text that is hidden finds it out.
        raise wrong_parameter("reason", f"a mask of {stream} hides reasons; ask by kind")
    reader = LetterReader(entry.stream, catalog, topics)
    for where in asked.before or ():
        if where.topic not in reader.topics:
            raise wrong_parameter("before", f"{where.topic} has no dead letters of {stream}")
    bounds = Bounds(asked.limit, _RECORDS, _BYTES, asked.within_ms / 1_000)
    found = read_backwards(settings, reader.topics, reader.is_wanted(asked), bounds, asked.before)
    if not found.topics:
        raise refusal(
            409,
            f"{stream} has no dead letters: there is no topic {reader.topics[0]}. A front-end makes it once it reads "
            "an input topic of the stream",
        )
    shown = reader.masked if is_masked else reader.shown
    letters = [shown(message) for message in found.records]
    return FoundLetters(found.topics, letters, found.read, found.stopped, found.before, is_masked)
