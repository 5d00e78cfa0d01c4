package bench

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
)

// writer returns what rows are emitted to. It writes the header first: to out for people, to log if
// out is for programs.
func writer(out, log io.Writer, asJSON bool, header string, bar *progress) func(Result) error {
	if asJSON {
		fmt.Fprint(log, header)
		enc := json.NewEncoder(out)
		return func(r Result) error { bar.clear(); return enc.Encode(r) }
	}
	fmt.Fprint(out, header)
	suite := ""
	return func(r Result) error {
		bar.clear()
		if r.Suite != suite {
			suite = r.Suite
			fmt.Fprintf(out, "\n"+lineFormat, suite, "median", "±", "floor", "× floor", "peer", "±", "× peer", "target")
		}
		_, err := fmt.Fprintf(out, lineFormat, r.Name, cmp.Or(quantity(r.Value, r.Unit), "0"), percent(r.Spread),
			quantity(r.Floor, r.Unit), number(r.RatioToFloor), quantity(r.PeerValue, r.Unit),
			peerSpread(r), number(r.RatioToPeer), verdict(r))
		return err
	}
}

const lineFormat = "%-26s %12s %7s %12s %8s %12s %7s %8s  %s\n"

// quantity prints a value with a unit that people read.
func quantity(v float64, u Unit) string {
	switch {
	case v == 0:
		return ""
	case u == Nanoseconds:
		return scaled(v, 1000, "ns", "µs", "ms", "s")
	case u == Bytes:
		return scaled(v, 1024, "B", "KiB", "MiB", "GiB")
	case u == Flops:
		return scaled(v, 1000, "FLOP/s", "kFLOP/s", "MFLOP/s", "GFLOP/s")
	case u == PerSecond:
		return scaled(v, 1000, "/s", "k/s", "M/s", "G/s")
	}
	return number(v)
}

func scaled(v, step float64, units ...string) string {
	i := 0
	for ; i < len(units)-1 && v >= step; i++ {
		v /= step
	}
	return number(v) + " " + units[i]
}

// number prints three digits, and nothing for what does not apply.
func number(v float64) string {
	switch {
	case v == 0:
		return ""
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case v >= 0.01:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}

func percent(v float64) string { return strconv.FormatFloat(100*v, 'f', 0, 64) + " %" }

// peerSpread is empty where there is no peer.
func peerSpread(r Result) string {
	if r.Peer == "" {
		return ""
	}
	return percent(r.PeerSpread)
}

// verdict says what a row should reach, and how that went. A noisy row neither reaches nor misses
// it.
func verdict(r Result) string {
	switch {
	case r.Target == "":
		return ""
	case r.Noisy:
		return "noisy: " + r.Target
	case r.Met:
		return "met: " + r.Target
	}
	return "MISSED: " + r.Target
}
