import java.io.IOException;
import java.time.Instant;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.typeutils.RowTypeInfo;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.core.JsonFactory;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.core.JsonParser;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.core.JsonToken;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.legacy.RichSinkFunction;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;

/**
 * Sums, counts and averages per card over sliding windows, by Flink SQL's OVER aggregation with a RANGE of row time.
 *
 * <p>Arguments: the events (NDJSON), the file for results (CSV), how far watermarks are behind events in ms, and each
 * window in ms. It serves as Feed does.
 */
public final class OverRange {
  /** Reads events as rows. */
  public static final class Events extends Feed.Events<Row> {
    Events(String path) {
      super(path);
    }

    @Override
    protected Row decoded(JsonFactory factory, String line) throws IOException {
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
  }

  /** Writes a line for each result. */
  public static final class Results extends RichSinkFunction<Row> {
    private final StringBuilder line = new StringBuilder();

    @Override
    public void invoke(Row row, Context context) throws Exception {
      line.setLength(0);
      for (int place = 0; place < row.getArity(); place++) {
        line.append(place == 0 ? "" : ",").append(row.getField(place));
      }
      Feed.write(line.append('\n').toString());
    }
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
    StreamExecutionEnvironment environment = Feed.environment();
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

  public static void main(String[] arguments) throws Exception {
    Feed.open(arguments[1]);
    Feed.serve(started(arguments));
  }
}
