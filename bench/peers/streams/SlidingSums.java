import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.state.RocksDBConfigSetter;
import org.apache.kafka.streams.state.WindowStore;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.BloomFilter;
import org.rocksdb.Options;

/**
 * Sums, counts and averages per card over sliding windows, by the windows of the DSL of Kafka Streams.
 *
 * <p>Arguments: the topic of events, the topic of results, how late events may be in ms, and each window in ms. It ends
 * with its standard input.
 *
 * <p>Every window that holds an event is updated by it, and each update comes out. The one of the window that ends with
 * the event is its answer; the others are left out.
 */
public final class SlidingSums {
  private static final String PREFIX = "streams.";
  private static final JsonFactory JSON = new JsonFactory();

  /** What is needed of an event. */
  record Event(String id, long time, double amount) {}

  /** What a window holds, and its event that came last. */
  record Held(long count, double sum, long time, String id) {
    static final Held NOTHING = new Held(0, 0.0, Long.MIN_VALUE, "");

    Held with(Event event) {
      return new Held(count + 1, sum + event.amount, event.time, event.id);
    }

    String answer(int n) {
      String sums = "\"c" + n + "\":" + count + ",\"s" + n + "\":" + sum + ",\"a" + n + "\":" + sum / count;
      return "{\"id\":\"" + id + "\",\"metrics\":{" + sums + "}}";
    }
  }

  /** Larger caches and Bloom filters, for what is called tuned. */
  public static final class LargeCaches implements RocksDBConfigSetter {
    private BloomFilter filter;

    @Override
    public void setConfig(String store, Options options, Map<String, Object> configuration) {
      BlockBasedTableConfig table = (BlockBasedTableConfig) options.tableFormatConfig();
      filter = new BloomFilter();
      table.setFilterPolicy(filter);
      table.setOptimizeFiltersForMemory(true);
      options.setTableFormatConfig(table);
      options.setWriteBufferSize(64L << 20);
    }

    @Override
    public void close(String store, Options options) {
      filter.close();
    }
  }

  private static Event decoded(byte[] bytes) {
    String id = null;
    long time = 0;
    double amount = 0;
    try (JsonParser parser = JSON.createParser(bytes)) {
      parser.nextToken();
      while (parser.nextToken() == JsonToken.FIELD_NAME) {
        String name = parser.currentName();
        parser.nextToken();
        switch (name) {
          case "tx_id" -> id = parser.getText();
          case "ts" -> time = parser.getLongValue();
          case "amount" -> amount = parser.getDoubleValue();
          default -> parser.skipChildren();
        }
      }
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
    return new Event(id, time, amount);
  }

  private static Serde<Event> eventSerde() {
    return Serdes.serdeFrom(
        (topic, event) -> {
          throw new UnsupportedOperationException("events are not written");
        },
        (topic, bytes) -> decoded(bytes));
  }

  private static Serde<Held> heldSerde() {
    return Serdes.serdeFrom(
        (topic, held) -> {
          if (held == null) {
            return null;
          }
          byte[] id = held.id.getBytes(StandardCharsets.UTF_8);
          ByteBuffer buffer = ByteBuffer.allocate(24 + id.length);
          return buffer.putLong(held.count).putDouble(held.sum).putLong(held.time).put(id).array();
        },
        (topic, bytes) -> {
          if (bytes == null) {
            return null;
          }
          ByteBuffer buffer = ByteBuffer.wrap(bytes);
          String id = new String(bytes, 24, bytes.length - 24, StandardCharsets.UTF_8);
          return new Held(buffer.getLong(), buffer.getDouble(), buffer.getLong(), id);
        });
  }

  private static Topology topology(String[] arguments) {
    StreamsBuilder builder = new StreamsBuilder();
    Consumed<String, Event> consumed =
        Consumed.with(Serdes.String(), eventSerde())
            .withTimestampExtractor((record, latest) -> ((Event) record.value()).time);
    KGroupedStream<String, Event> cards =
        builder.stream(arguments[0], consumed).groupByKey(Grouped.with(Serdes.String(), eventSerde()));
    Duration late = Duration.ofMillis(Long.parseLong(arguments[2]));
    for (int place = 3; place < arguments.length; place++) {
      int n = place - 3;
      Duration window = Duration.ofMillis(Long.parseLong(arguments[place]));
      Materialized<String, Held, WindowStore<Bytes, byte[]>> store = Materialized.as("window-" + n);
      cards
          .windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(window, late))
          .aggregate(
              () -> Held.NOTHING,
              (card, event, held) -> held.with(event),
              store.withKeySerde(Serdes.String()).withValueSerde(heldSerde()))
          .toStream()
          .filter((card, held) -> held != null && held.time == card.window().end())
          .map((card, held) -> KeyValue.pair(held.id, held.answer(n)))
          .to(arguments[1], Produced.with(Serdes.String(), Serdes.String()));
    }
    return builder.build();
  }

  /** The system properties that begin with "streams." are the configuration of Kafka Streams. */
  private static Properties configuration() {
    Properties configuration = new Properties();
    for (String name : System.getProperties().stringPropertyNames()) {
      if (name.startsWith(PREFIX)) {
        configuration.setProperty(name.substring(PREFIX.length()), System.getProperty(name));
      }
    }
    return configuration;
  }

  public static void main(String[] arguments) throws Exception {
    KafkaStreams streams = new KafkaStreams(topology(arguments), configuration());
    streams.setUncaughtExceptionHandler(
        error -> {
          error.printStackTrace();
          Runtime.getRuntime().halt(1);
          return StreamThreadExceptionResponse.SHUTDOWN_APPLICATION;
        });
    streams.start();
    while (System.in.read() >= 0) {}
    streams.close(Duration.ofSeconds(30));
    System.exit(0);
  }
}
