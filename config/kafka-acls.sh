#!/bin/sh
# Grants one principal what one role of a cluster needs on the broker. docs/kafka.md has the same as a table.
#
#     config/kafka-acls.sh ROLE PRINCIPAL [STREAM...] [--input TOPIC] [--output TOPIC] [--dead TOPIC]
#     config/kafka-acls.sh frontend User:railgun-frontend payments
#     config/kafka-acls.sh frontend User:railgun-frontend payments --input prod.payments --output prod.payments.scored
#     config/kafka-acls.sh node User:railgun-node
#     config/kafka-acls.sh spark User:railgun-spark
#     config/kafka-acls.sh backfill User:railgun-backfill
#     config/kafka-acls.sh client User:fraud-app payments
#     config/kafka-acls.sh client User:fraud-app --input prod.payments --output prod.payments.scored
#
# STREAM: those with an input topic. A front-end reads these topics; a client writes events to them, and reads replies.
# TOPIC: topics with names of their own that definitions name: as input, or as topic or dead of an output. Each option may
# stand several times. A front-end reads or writes them, Spark reads outputs, a client writes inputs and reads the others.
# In the environment:
#   PREFIX      cluster.topic_prefix (railgun)
#   GROUP       the consumer group in which a client reads (the name of the topic)
#   KAFKA_ACLS  the command that grants, with what it needs to reach the broker as an administrator
#               (kafka-acls.sh --bootstrap-server 127.0.0.1:9092)
set -eu

PREFIX=${PREFIX:-railgun}
KAFKA_ACLS=${KAFKA_ACLS:-kafka-acls.sh --bootstrap-server 127.0.0.1:9092}

# grant OPERATION,... RESOURCE NAME: a name that ends in a star stands for all that begin so.
grant() {
    operations=$1 resource=$2 name=$3 pattern=literal
    case $name in *'*') name=${name%?} pattern=prefixed ;; esac
    set -- --add --allow-principal "$principal" "--$resource" "$name" --resource-pattern-type "$pattern"
    for operation in $(echo "$operations" | tr , ' '); do
        set -- "$@" --operation "$operation"
    done
    $KAFKA_ACLS "$@"
}

if [ $# -lt 2 ]; then
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
role=$1 principal=$2
shift 2

# named KIND TOPIC: what a role needs on a topic with a name of its own.
named() {
    case $role:$1 in
    frontend:--input) grant Read topic "$2" ;;
    frontend:--output | frontend:--dead) grant Create,Write topic "$2" ;;
    spark:--output) grant Read topic "$2" ;;
    client:--input) grant Write topic "$2" ;;
    client:--output | client:--dead)
        grant Read topic "$2"
        grant Read group "${GROUP:-$2}"
        ;;
    *)
        echo "$role has nothing to do with $1" >&2
        exit 2
        ;;
    esac
}

# What is left are the streams.
count=$#
while [ "$count" -gt 0 ]; do
    case $1 in
    --*)
        if [ "$count" -lt 2 ]; then
            echo "$1: the name of a topic is missing" >&2
            exit 2
        fi
        named "$1" "$2"
        shift 2
        count=$((count - 2))
        ;;
    *)
        set -- "$@" "$1"
        shift
        count=$((count - 1))
        ;;
    esac
done

# librdkafka asks for the group of every consumer, also of those that belong to none.
if [ "$role" != client ]; then
    grant Describe group railgun-unused
fi

case $role in
frontend)
    grant Create,Read,Write,Delete,AlterConfigs topic "$PREFIX.*"
    grant Describe group "$PREFIX.nodes"
    grant Write transactional-id "$PREFIX.catalog"
    for stream in "$@"; do
        grant Read group "$PREFIX.$stream.in"
        grant Write transactional-id "$PREFIX.$stream.in.*"
    done
    ;;
node)
    grant Create,Read,Write,Delete,AlterConfigs topic "$PREFIX.*"
    grant Read group "$PREFIX.nodes"
    grant Write transactional-id "$PREFIX.assignment"
    grant Write transactional-id "$PREFIX.catalog"
    ;;
spark)
    grant Read topic "$PREFIX.*"
    ;;
backfill)
    grant Create,Read,Write,DescribeConfigs topic "$PREFIX.*"
    grant Write transactional-id "$PREFIX.catalog"
    ;;
client)
    for stream in "$@"; do
        grant Write topic "$PREFIX.$stream.in"
        grant Read topic "$PREFIX.$stream.out"
        grant Read group "${GROUP:-$PREFIX.$stream.out}"
    done
    ;;
*)
    echo "$role: there are the roles frontend, node, spark, backfill and client" >&2
    exit 2
    ;;
esac
