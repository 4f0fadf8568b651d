import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Semaphore;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.core.JsonFactory;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.source.legacy.SourceFunction;

/** What programs on Flink have in common: an embedded cluster, a file of events, and a file of results. */
public final class Feed {
  private static final String PREFIX = "flink.";
  private static final Semaphore ALLOWED = new Semaphore(0);
  private static final Object PROGRESS = new Object();
  private static long written = 0;
  private static boolean ended = false;
  private static OutputStream results;

  private Feed() {}

  /** Reads the events of a file of JSON lines, and passes on as many as are allowed. */
  public abstract static class Events<T> implements SourceFunction<T> {
    private final String path;
    private volatile boolean running = true;

    protected Events(String path) {
      this.path = path;
    }

    /** Returns the event of a line. */
    protected abstract T decoded(JsonFactory factory, String line) throws IOException;

    @Override
    public void run(SourceContext<T> context) throws Exception {
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

    @Override
    public void cancel() {
      running = false;
    }
  }

  /** An environment of one task. The system properties that begin with "flink." are its configuration. */
  static StreamExecutionEnvironment environment() {
    Configuration configuration = new Configuration();
    for (String name : System.getProperties().stringPropertyNames()) {
      if (name.startsWith(PREFIX)) {
        configuration.setString(name.substring(PREFIX.length()), System.getProperty(name));
      }
    }
    return StreamExecutionEnvironment.createLocalEnvironment(1, configuration);
  }

  /** Opens the file of results. To be called before the job starts. */
  static void open(String path) throws IOException {
    results = new BufferedOutputStream(Files.newOutputStream(Path.of(path)), 1 << 16);
  }

  /** Writes the result of an event, a line with its end, and counts it. */
  static void write(String line) throws IOException {
    results.write(line.getBytes(StandardCharsets.UTF_8));
    synchronized (PROGRESS) {
      written++;
      PROGRESS.notifyAll();
    }
  }

  /** Calls a function when a job ends well; ends the process if it fails. */
  static void whenEnded(JobClient job, Runnable then) {
    job.getJobExecutionResult()
        .whenComplete(
            (result, error) -> {
              if (error != null) {
                error.printStackTrace();
                System.exit(1);
              }
              then.run();
            });
  }

  /**
   * Serves until the standard input ends, then ends the process.
   *
   * <p>For a line "N" it says that it is ready; after the next line N more events are let through, and it says so when
   * their results are written.
   */
  static void serve(JobClient job) throws Exception {
    whenEnded(
        job,
        () -> {
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

  private static void await(long target) throws Exception {
    synchronized (PROGRESS) {
      while (written < target && !ended) {
        PROGRESS.wait();
      }
    }
    results.flush();
  }
}
