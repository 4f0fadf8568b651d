import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.concurrent.Semaphore;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.typeutils.RowTypeInfo;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.core.JsonFactory;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.core.JsonParser;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.core.JsonToken;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.legacy.RichSinkFunction;
import org.apache.flink.streaming.api.functions.source.legacy.SourceFunction;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;

/**
 * Sums, counts and averages per card over sliding windows, by Flink SQL's OVER aggregation with a RANGE of row time.
 *
 * <p>Arguments: the events (NDJSON), the file for results (CSV), how far watermarks are behind events in ms, and each
 * window in ms. For a line "N" on the standard input it says that it is ready; after the next line N more events are
 * let through, and it says so when their results are written.
 */
public final class OverRange {
  private static final String PREFIX = "flink.";
  private static final Semaphore ALLOWED = new Semaphore(0);
  private static final Object PROGRESS = new Object();
  private static long written = 0;
  private static boolean ended = false;
  private static OutputStream results;

  /** Reads the events, and passes on as many as are allowed. */
  public static final class Events implements SourceFunction<Row> {
    private final String path;
    private volatile boolean running = true;

    Events(String path) {
      this.path = path;
    }

    @Override
    public void run(SourceContext<Row> context) throws Exception {
      JsonFactory factory = new JsonFactory();
      try (BufferedReader lines = Files.newBufferedReader(Path.of(path))) {
        String line;
        while (running && (line = lines.readLine()) != null) {
          ALLOWED.acquire();
          synchronized (context.getCheckpointLock()) {
            context.collect(decoded(factory, line));
          }
        }
      }
    }

    private static Row decoded(JsonFactory factory, String line) throws Exception {
      Row row = new Row(5);
      try (JsonParser parser = factory.createParser(line)) {
        parser.nextToken();
        while (parser.nextToken() == JsonToken.FIELD_NAME) {
          String name = parser.currentName();
          parser.nextToken();
          switch (name) {
            case "tx_id" -> row.setField(0, parser.getText());
            case "ts" -> row.setField(1, Instant.ofEpochMilli(parser.getLongValue()));
            case "card" -> row.setField(2, parser.getText());
            case "merchant" -> row.setField(3, parser.getText());
            case "amount" -> row.setField(4, parser.getDoubleValue());
            default -> throw new IllegalArgumentException("no such field: " + name);
          }
        }
      }
      return row;
    }

    @Override
    public void cancel() {
      running = false;
    }
  }

  /** Writes a line for each result, and counts them. */
  public static final class Results extends RichSinkFunction<Row> {
    private final StringBuilder line = new StringBuilder();

    @Override
    public void invoke(Row row, Context context) throws Exception {
      line.setLength(0);
      for (int place = 0; place < row.getArity(); place++) {
        line.append(place == 0 ? "" : ",").append(row.getField(place));
      }
      results.write(line.append('\n').toString().getBytes(StandardCharsets.UTF_8));
      synchronized (PROGRESS) {
        written++;
        PROGRESS.notifyAll();
      }
    }
  }

  /** The system properties that begin with "flink." are Flink's configuration. */
  private static Configuration configuration() {
    Configuration configuration = new Configuration();
    for (String name : System.getProperties().stringPropertyNames()) {
      if (name.startsWith(PREFIX)) {
        configuration.setString(name.substring(PREFIX.length()), System.getProperty(name));
      }
    }
    return configuration;
  }

  /** A span of milliseconds as SQL. */
  private static String interval(long span) {
    long seconds = span / 1000;
    return String.format(
        "INTERVAL '%d %02d:%02d:%02d.%03d' DAY TO SECOND(3)",
        seconds / 86400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60, span % 1000);
  }

  /** One nested query for each window: a streaming query has one OVER window. */
  private static String query(String[] arguments, int first) {
    String from = "events";
    StringBuilder columns = new StringBuilder("tx_id");
    for (int place = first; place < arguments.length; place++) {
      long window = Long.parseLong(arguments[place]);
      int n = place - first;
      String over =
          "OVER (PARTITION BY card ORDER BY ts RANGE BETWEEN " + interval(window) + " PRECEDING AND CURRENT ROW)";
      from =
          String.format(
              "(SELECT *, COUNT(amount) %2$s AS c%1$d, SUM(amount) %2$s AS s%1$d, AVG(amount) %2$s AS a%1$d FROM %3$s)",
              n, over, from);
      columns.append(String.format(", c%1$d, s%1$d, a%1$d", n));
    }
    return "SELECT " + columns + " FROM " + from;
  }

  private static JobClient started(String[] arguments) throws Exception {
    StreamExecutionEnvironment environment = StreamExecutionEnvironment.createLocalEnvironment(1, configuration());
    StreamTableEnvironment tables = StreamTableEnvironment.create(environment);
    RowTypeInfo type =
        new RowTypeInfo(
            new org.apache.flink.api.common.typeinfo.TypeInformation<?>[] {
              Types.STRING, Types.INSTANT, Types.STRING, Types.STRING, Types.DOUBLE
            },
            new String[] {"tx_id", "ts", "card", "merchant", "amount"});
    DataStream<Row> events = environment.addSource(new Events(arguments[0]), "events", type);
    long behind = Long.parseLong(arguments[2]);
    String watermark = behind == 0 ? "ts" : "ts - " + interval(behind);
    Schema schema =
        Schema.newBuilder()
            .column("tx_id", DataTypes.STRING())
            .column("ts", DataTypes.TIMESTAMP_LTZ(3))
            .column("card", DataTypes.STRING())
            .column("merchant", DataTypes.STRING())
            .column("amount", DataTypes.DOUBLE())
            .watermark("ts", watermark)
            .build();
    tables.createTemporaryView("events", events, schema);
    tables.toDataStream(tables.sqlQuery(query(arguments, 3))).addSink(new Results()).name("results");
    return environment.executeAsync("peers");
  }

  private static void await(long target) throws Exception {
    synchronized (PROGRESS) {
      while (written < target && !ended) {
        PROGRESS.wait();
      }
    }
    results.flush();
  }

  public static void main(String[] arguments) throws Exception {
    results = new BufferedOutputStream(Files.newOutputStream(Path.of(arguments[1])), 1 << 16);
    JobClient job = started(arguments);
    job.getJobExecutionResult()
        .whenComplete(
            (result, error) -> {
              if (error != null) {
                error.printStackTrace();
                System.exit(1);
              }
              synchronized (PROGRESS) {
                ended = true;
                PROGRESS.notifyAll();
              }
            });
    BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
    long target = 0;
    String line;
    while ((line = orders.readLine()) != null) {
      int events = Integer.parseInt(line.strip());
      System.out.println("{\"ready\": " + events + "}");
      if (orders.readLine() == null) {
        break;
      }
      target += events;
      ALLOWED.release(events);
      await(target);
      System.out.println("{\"events\": " + events + "}");
    }
    results.close();
    System.exit(0);
  }
}
