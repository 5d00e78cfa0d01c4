package bench

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
)

// writer returns a function that prints a row. It first writes the header, to out, or to log if
// asJSON is set.
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

// quantity formats a value with its unit.
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

// number formats a value with three significant digits, or as an empty string if it is 0.
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

// peerSpread is empty if there is no peer.
func peerSpread(r Result) string {
	if r.Peer == "" {
		return ""
	}
	return percent(r.PeerSpread)
}

// verdict describes the target and whether it was met. A noisy row neither meets nor misses it.
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
