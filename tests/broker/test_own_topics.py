"""Topics of tests that have run are deleted from the broker that all tests share; others stay."""

from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker.own_topics import delete_own, own_prefix
from tests.unit.local_units import awaited


def test_topics_go_with_their_prefix(kafka: str) -> None:
    delete_own()
    client, others = AdminClient({"bootstrap.servers": kafka}), f"other.{own_prefix('o')}"
    prefix = own_prefix("o")
    asked = [NewTopic(name, 1, 1) for name in (others, prefix, f"{prefix}.one", f"{prefix}-two")]
    for created in client.create_topics(asked).values():
        created.result()

    def known() -> set[str]:
        return {name for name in client.list_topics(timeout=30).topics if others in name or prefix in name}

    # A broker shows a topic a moment after it has made it.
    awaited(lambda: len(known()) == 4)
    delete_own()
    awaited(lambda: known() == {others})
    client.delete_topics([others])[others].result()
