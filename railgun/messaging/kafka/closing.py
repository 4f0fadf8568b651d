"""The end of a producer of transactions, whose own `close` waits without end for a broker that is away (2.16)."""

import contextlib

from confluent_kafka import KafkaException, Producer

# What is under way is given up at once where the broker answers.
_GIVEN_UP_S = 5.0


def close_writer(producer: Producer) -> None:
    """Give up the transaction that is under way, if any, and let go of the connection. Where that does not come about,
    the broker gives it up once its time is over, and the client ends with whoever has it.
    """
    with contextlib.suppress(KafkaException):
        if _has_no_transaction(producer):
            producer.close()


def _has_no_transaction(producer: Producer) -> bool:
    try:
        producer.abort_transaction(_GIVEN_UP_S)
    except KafkaException as error:
        # What else is said is said at once, to `close` too: there was none, it is being committed, it was shut out.
        return not error.args[0].retriable()
    return True
