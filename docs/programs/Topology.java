import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.Map;
import java.util.Properties;
import java.util.zip.CRC32;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;

/**
 * A program under test: a Kafka Streams topology that reads every byte of a message, spends its CPU cost, and reports
 * both with the header to another topic. JDK's launcher runs this file as it is: java -cp JARS Topology.java
 */
public class Topology {
    private static final int HEADER_BYTES = 64;
    private static final Map<String, String> TOLD = System.getenv();
    private static final double COST_NANOSECONDS = 1e9 * Double.parseDouble(TOLD.get("STREAM_BENCH_CPU_SECONDS"));
    private static final HexFormat HEX = HexFormat.of();
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    public static void main(String[] arguments) {
        StreamsBuilder builder = new StreamsBuilder();
        builder.<byte[], byte[]>stream(TOLD.get("STREAM_BENCH_TOPIC"))
            .mapValues(Topology::work)
            .to(TOLD.get("STREAM_BENCH_REPORT_TOPIC"));
        KafkaStreams streams = new KafkaStreams(builder.build(), settings());
        streams.setStateListener((now, before) -> {
            if (now == KafkaStreams.State.RUNNING) {
                System.out.println("ready");
            } else if (now == KafkaStreams.State.ERROR) {
                System.exit(1);
            }
        });
        streams.start();
    }

    private static Properties settings() {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, TOLD.get("STREAM_BENCH_TOPIC"));
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, TOLD.get("STREAM_BENCH_ADDRESS"));
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, TOLD.get("STREAM_BENCH_CORES"));
        settings.put(StreamsConfig.STATE_DIR_CONFIG, Path.of(TOLD.get("STREAM_BENCH_ENDPOINT")).getParent().toString());
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.ByteArraySerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.ByteArraySerde.class);
        settings.put(StreamsConfig.consumerPrefix("fetch.max.bytes"), 64 << 20);
        settings.put(StreamsConfig.consumerPrefix("max.partition.fetch.bytes"), 16 << 20);
        settings.put(StreamsConfig.consumerPrefix("max.poll.records"), 10_000);
        settings.put(StreamsConfig.producerPrefix("linger.ms"), 5);
        return settings;
    }

    /** Returns the record that reports a message: its header, the CPU time in microseconds, the CRC-32 of its body. */
    private static byte[] work(byte[] message) {
        CRC32 checksum = new CRC32();
        checksum.update(message, HEADER_BYTES, message.length - HEADER_BYTES);
        long began = THREADS.getCurrentThreadCpuTime(); // the CPU cost comes after the verification
        long used = 0;
        if (COST_NANOSECONDS > 0) {
            do {
                used = THREADS.getCurrentThreadCpuTime() - began;
            } while (used < COST_NANOSECONDS);
        }
        String said = HEX.toHexDigits(used / 1000, 8) + HEX.toHexDigits(checksum.getValue(), 8);
        return ByteBuffer.allocate(HEADER_BYTES + said.length())
            .put(message, 0, HEADER_BYTES)
            .put(said.getBytes(StandardCharsets.US_ASCII))
            .array();
    }
}
