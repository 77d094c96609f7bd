// A program under test: reads the lines of a TCP source, and reports the header of each message over TCP.
// Needs nothing but Go's standard library.
package main

import (
	"bufio"
	"log"
	"net"
	"os"
)

func connect(variable string) net.Conn {
	connection, err := net.Dial("tcp", os.Getenv(variable))
	if err != nil {
		log.Fatal(err)
	}
	return connection
}

func main() {
	messages := bufio.NewReaderSize(connect("STREAM_BENCH_ADDRESS"), 1<<20)
	reports := bufio.NewWriter(connect("STREAM_BENCH_REPORT_ADDRESS"))
	reports.WriteString(os.Getenv("STREAM_BENCH_REPORT_TOKEN") + "\n")
	reports.Flush()
	for {
		message, err := messages.ReadBytes('\n')
		if err != nil {
			log.Fatal(err)
		}
		reports.Write(message[:64])
		if messages.Buffered() == 0 {
			reports.Flush()
		}
	}
}
