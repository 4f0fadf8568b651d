"""A process that adds metrics to a stream of a cluster, one after another, saying each as it is done."""

import sys

from railgun.messaging.kafka.settings import KafkaSettings
from railgun.registry.evolution import new_metrics
from railgun.registry.kafka_registry import KafkaRegistry


def main(broker: str, prefix: str, writer: str, count: int) -> None:
    with KafkaRegistry(KafkaSettings(broker), prefix) as registry:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        for number in range(count):
            sql = f"SELECT count(*) AS {writer}_{number} FROM s GROUP BY card OVER SLIDING 1 SECOND"
            registry.change(lambda catalog, sql=sql: new_metrics(catalog, "s", sql))
            sys.stdout.write(f"{number}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
