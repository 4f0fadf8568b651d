import java.io.IOException;
import org.apache.flink.api.common.eventtime.Watermark;
import org.apache.flink.api.common.eventtime.WatermarkGenerator;
import org.apache.flink.api.common.eventtime.WatermarkOutput;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.core.JsonParser;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.core.JsonToken;

/** An event of the DataStream API: the five fields of a payment. Flink knows how to serialize it, as a POJO. */
public final class Payment {
  public String id;
  public long time;
  public String card;
  public String merchant;
  public double amount;

  /** Makes a payment of the JSON that a parser has, and closes it. Other fields are left out. */
  static Payment decoded(JsonParser json) throws IOException {
    Payment payment = new Payment();
    try (JsonParser parser = json) {
      parser.nextToken();
      while (parser.nextToken() == JsonToken.FIELD_NAME) {
        String name = parser.currentName();
        parser.nextToken();
        switch (name) {
          case "tx_id" -> payment.id = parser.getText();
          case "ts" -> payment.time = parser.getLongValue();
          case "card" -> payment.card = parser.getText();
          case "merchant" -> payment.merchant = parser.getText();
          case "amount" -> payment.amount = parser.getDoubleValue();
          default -> parser.skipChildren();
        }
      }
    }
    return payment;
  }

  /** A watermark for each event: no later event is more than so many ms behind the greatest time so far. */
  static WatermarkStrategy<Payment> watermarks(long behind) {
    return WatermarkStrategy.<Payment>forGenerator(context -> new EachEvent(behind))
        .withTimestampAssigner((payment, recorded) -> payment.time);
  }

  /** Emits the watermarks. Like those of Flink itself they are a millisecond less, as times may be equal. */
  public static final class EachEvent implements WatermarkGenerator<Payment> {
    private final long behind;
    private long greatest = 0;

    EachEvent(long behind) {
      this.behind = behind;
    }

    @Override
    public void onEvent(Payment payment, long time, WatermarkOutput output) {
      greatest = Math.max(greatest, time);
      output.emitWatermark(new Watermark(greatest - behind - 1));
    }

    @Override
    public void onPeriodicEmit(WatermarkOutput output) {}
  }
}
