import java.io.IOException;
import java.util.Arrays;
import java.util.Map;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.core.JsonFactory;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.sink.legacy.RichSinkFunction;
import org.apache.flink.util.Collector;

/**
 * Sums, counts and averages per card over sliding windows, by a keyed function of Flink's DataStream API.
 *
 * <p>Arguments: the events (NDJSON), the file for results (CSV), how far watermarks are behind events in ms, and each
 * window in ms. It serves as Feed does.
 */
public final class KeyedSums {
  /** Reads events as payments. */
  public static final class Events extends Feed.Events<Payment> {
    Events(String path) {
      super(path);
    }

    @Override
    protected Payment decoded(JsonFactory factory, String line) throws IOException {
      return Payment.decoded(factory.createParser(line));
    }
  }

  /**
   * Keeps the events of a card by their time, adds up those of each window (T - w, T] when an event of time T comes,
   * and forgets an event by a timer when the longest window is past it.
   */
  public static final class Windows extends KeyedProcessFunction<String, Payment, String> {
    private final long[] windows;
    private final long longest;
    private transient MapState<Long, Tuple2<Long, Double>> events;
    private transient long[] counts;
    private transient double[] sums;
    private transient StringBuilder line;

    Windows(long[] windows) {
      this.windows = windows;
      this.longest = Arrays.stream(windows).max().orElseThrow();
    }

    @Override
    public void open(OpenContext context) {
      // How many events came at a time, and their amounts' sum: few come at the same.
      events =
          getRuntimeContext()
              .getMapState(new MapStateDescriptor<>("events", Types.LONG, Types.TUPLE(Types.LONG, Types.DOUBLE)));
      counts = new long[windows.length];
      sums = new double[windows.length];
      line = new StringBuilder();
    }

    @Override
    public void processElement(Payment payment, Context context, Collector<String> answers) throws Exception {
      Tuple2<Long, Double> same = events.get(payment.time);
      long count = same == null ? 1 : same.f0 + 1;
      double sum = same == null ? payment.amount : same.f1 + payment.amount;
      events.put(payment.time, Tuple2.of(count, sum));
      context.timerService().registerEventTimeTimer(payment.time + longest);
      add(payment.time);
      answers.collect(answer(payment.id));
    }

    @Override
    public void onTimer(long time, OnTimerContext context, Collector<String> answers) throws Exception {
      events.remove(time - longest);
    }

    private void add(long now) throws Exception {
      Arrays.fill(counts, 0);
      Arrays.fill(sums, 0.0);
      for (Map.Entry<Long, Tuple2<Long, Double>> each : events.entries()) {
        long age = now - each.getKey();
        for (int n = 0; n < windows.length; n++) {
          if (age >= 0 && age < windows[n]) {
            counts[n] += each.getValue().f0;
            sums[n] += each.getValue().f1;
          }
        }
      }
    }

    private String answer(String id) {
      line.setLength(0);
      line.append(id);
      for (int n = 0; n < windows.length; n++) {
        line.append(',').append(counts[n]).append(',').append(sums[n]).append(',').append(sums[n] / counts[n]);
      }
      return line.append('\n').toString();
    }
  }

  /** Writes the line of each result. */
  public static final class Results extends RichSinkFunction<String> {
    @Override
    public void invoke(String line, Context context) throws Exception {
      Feed.write(line);
    }
  }

  private static JobClient started(String[] arguments) throws Exception {
    StreamExecutionEnvironment environment = Feed.environment();
    long behind = Long.parseLong(arguments[2]);
    long[] windows = Arrays.stream(arguments, 3, arguments.length).mapToLong(Long::parseLong).toArray();
    environment
        .addSource(new Events(arguments[0]), "events", TypeInformation.of(Payment.class))
        .assignTimestampsAndWatermarks(Payment.watermarks(behind))
        .keyBy(payment -> payment.card, Types.STRING)
        .process(new Windows(windows))
        .addSink(new Results())
        .name("results");
    return environment.executeAsync("peers");
  }

  public static void main(String[] arguments) throws Exception {
    Feed.open(arguments[1]);
    Feed.serve(started(arguments));
  }
}
