"""Closes a transactional producer, whose own `close` blocks forever while its broker is away (2.16)."""

import contextlib

from confluent_kafka import KafkaException, Producer

# A broker that answers at all aborts a transaction at once.
_ABORT_S = 5.0


def close_transactional(producer: Producer) -> None:
    """Abort the open transaction, if any, and close the producer.

    If the broker does not answer, the producer is left open. It goes with its last reference, and the broker aborts
    the transaction after its timeout.
    """
    with contextlib.suppress(KafkaException):
        if _abort(producer):
            producer.close()


def _abort(producer: Producer) -> bool:
    """Whether `close` will return: no transaction is open, or librdkafka knows that it cannot be aborted."""
    try:
        producer.abort_transaction(_ABORT_S)
    except KafkaException as error:
        # Not retriable: there was none, it is being committed, or the producer was fenced. `close` fails at once too.
        return not error.args[0].retriable()
    return True
