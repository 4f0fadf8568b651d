import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.core.JsonFactory;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.legacy.RichSinkFunction;
import org.apache.flink.streaming.api.functions.source.legacy.SourceFunction;
import org.apache.flink.streaming.api.windowing.assigners.SlidingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.triggers.Trigger;
import org.apache.flink.streaming.api.windowing.triggers.TriggerResult;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Sums per card over hopping windows of Flink's DataStream API, with an answer for each event, from topic to topic.
 *
 * <p>Arguments: the broker's address, the topic of events, the topic of results, the window and the hop in ms. It ends
 * with its standard input.
 *
 * <p>An event is in as many windows as hops fit in one, and each of them is updated. The answer is that of the oldest
 * open one: it has most of what the exact window has.
 */
public final class HoppingSums {
  /** Reads events from partition 0 of a topic, from its beginning on. */
  public static final class Events implements SourceFunction<Payment> {
    private final String broker;
    private final String topic;
    private volatile boolean running = true;

    Events(String broker, String topic) {
      this.broker = broker;
      this.topic = topic;
    }

    @Override
    public void run(SourceContext<Payment> context) throws Exception {
      Properties settings = new Properties();
      settings.setProperty("bootstrap.servers", broker);
      settings.setProperty("enable.auto.commit", "false");
      JsonFactory factory = new JsonFactory();
      ByteArrayDeserializer bytes = new ByteArrayDeserializer();
      try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings, bytes, bytes)) {
        List<TopicPartition> partitions = List.of(new TopicPartition(topic, 0));
        consumer.assign(partitions);
        consumer.seekToBeginning(partitions);
        while (running) {
          for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
            Payment payment = Payment.decoded(factory.createParser(record.value()));
            synchronized (context.getCheckpointLock()) {
              context.collect(payment);
            }
          }
        }
      }
    }

    @Override
    public void cancel() {
      running = false;
    }
  }

  /** Answers for an event with the one of its windows that ends first. */
  public static final class EachEvent extends Trigger<Payment, TimeWindow> {
    private final long hop;

    EachEvent(long hop) {
      this.hop = hop;
    }

    @Override
    public TriggerResult onElement(Payment payment, long time, TimeWindow window, TriggerContext context) {
      return window.getEnd() - time <= hop ? TriggerResult.FIRE : TriggerResult.CONTINUE;
    }

    @Override
    public TriggerResult onProcessingTime(long time, TimeWindow window, TriggerContext context) {
      return TriggerResult.CONTINUE;
    }

    @Override
    public TriggerResult onEventTime(long time, TimeWindow window, TriggerContext context) {
      return TriggerResult.CONTINUE;
    }

    @Override
    public void clear(TimeWindow window, TriggerContext context) {}
  }

  /** The sum of a window, and the id of its event that came last. */
  public static final class Sum
      implements AggregateFunction<Payment, Tuple2<String, Double>, Tuple2<String, Double>> {
    @Override
    public Tuple2<String, Double> createAccumulator() {
      return Tuple2.of("", 0.0);
    }

    @Override
    public Tuple2<String, Double> add(Payment payment, Tuple2<String, Double> held) {
      return Tuple2.of(payment.id, held.f1 + payment.amount);
    }

    @Override
    public Tuple2<String, Double> getResult(Tuple2<String, Double> held) {
      return held;
    }

    @Override
    public Tuple2<String, Double> merge(Tuple2<String, Double> one, Tuple2<String, Double> other) {
      throw new UnsupportedOperationException("hopping windows are not merged");
    }
  }

  /** Writes results to partition 0 of a topic, each with the event's id as its key. */
  public static final class Results extends RichSinkFunction<Tuple2<String, Double>> {
    private final String broker;
    private final String topic;
    private transient KafkaProducer<byte[], byte[]> producer;

    Results(String broker, String topic) {
      this.broker = broker;
      this.topic = topic;
    }

    @Override
    public void open(OpenContext context) {
      Properties settings = new Properties();
      settings.setProperty("bootstrap.servers", broker);
      settings.setProperty("linger.ms", "0");
      producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
    }

    @Override
    public void invoke(Tuple2<String, Double> result, Context context) {
      String value = "{\"id\":\"" + result.f0 + "\",\"s\":" + result.f1 + "}";
      byte[] key = result.f0.getBytes(StandardCharsets.UTF_8);
      producer.send(new ProducerRecord<>(topic, 0, key, value.getBytes(StandardCharsets.UTF_8)));
    }

    @Override
    public void close() {
      producer.close();
    }
  }

  private static JobClient started(String[] arguments) throws Exception {
    StreamExecutionEnvironment environment = Feed.environment();
    String broker = arguments[0];
    long window = Long.parseLong(arguments[3]);
    long hop = Long.parseLong(arguments[4]);
    environment
        .addSource(new Events(broker, arguments[1]), "events", TypeInformation.of(Payment.class))
        .assignTimestampsAndWatermarks(Payment.watermarks(0))
        .keyBy(payment -> payment.card, Types.STRING)
        .window(SlidingEventTimeWindows.of(Duration.ofMillis(window), Duration.ofMillis(hop)))
        .trigger(new EachEvent(hop))
        .aggregate(new Sum())
        .addSink(new Results(broker, arguments[2]))
        .name("results");
    return environment.executeAsync("hops");
  }

  public static void main(String[] arguments) throws Exception {
    Feed.whenEnded(started(arguments), () -> {});
    while (System.in.read() >= 0) {}
    System.exit(0);
  }
}
