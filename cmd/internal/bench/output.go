package bench

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
)

// rowWriter returns a function that prints a row to out, as JSON if asJSON is set. rowWriter
// itself writes the header, to out, or to log if asJSON is set. The function erases the line of
// bar before it prints.
func rowWriter(out, log io.Writer, asJSON bool, header string, bar *progress) func(Result) error {
	if asJSON {
		fmt.Fprint(log, header)
		enc := json.NewEncoder(out)
		return func(r Result) error { bar.clearLine(); return enc.Encode(r) }
	}
	fmt.Fprint(out, header)
	suite := ""
	return func(r Result) error {
		bar.clearLine()
		if r.Suite != suite {
			suite = r.Suite
			fmt.Fprintf(out, "\n"+lineFormat, suite, "median", "±", "floor", "× floor", "peer", "±",
				"× peer", "target")
		}
		_, err := fmt.Fprintf(out, lineFormat, r.Name, cmp.Or(formatQuantity(r.Value, r.Unit), "0"),
			formatPercent(r.Spread),
			formatQuantity(r.Floor, r.Unit), formatNumber(r.RatioToFloor), formatQuantity(r.PeerValue, r.Unit),
			peerSpread(r), formatNumber(r.RatioToPeer), describeVerdict(r))
		return err
	}
}

const lineFormat = "%-26s %12s %7s %12s %8s %12s %7s %8s  %s\n"

// formatQuantity formats a value with its unit, scaled to a prefix. It returns "" for 0.
func formatQuantity(v float64, u Unit) string {
	switch {
	case v == 0:
		return ""
	case u == Nanoseconds:
		return formatScaled(v, 1000, "ns", "µs", "ms", "s")
	case u == Bytes:
		return formatScaled(v, 1024, "B", "KiB", "MiB", "GiB")
	case u == Flops:
		return formatScaled(v, 1000, "FLOP/s", "kFLOP/s", "MFLOP/s", "GFLOP/s")
	case u == PerSecond:
		return formatScaled(v, 1000, "/s", "k/s", "M/s", "G/s")
	}
	return formatNumber(v)
}

func formatScaled(v, step float64, units ...string) string {
	i := 0
	for ; i < len(units)-1 && v >= step; i++ {
		v /= step
	}
	return formatNumber(v) + " " + units[i]
}

// formatNumber formats a value with three significant digits, or as an empty string if it is 0.
func formatNumber(v float64) string {
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

func formatPercent(v float64) string { return strconv.FormatFloat(100*v, 'f', 0, 64) + " %" }

// peerSpread returns the spread of the peer's values as a percentage, or "" if there is no peer.
func peerSpread(r Result) string {
	if r.Peer == "" {
		return ""
	}
	return formatPercent(r.PeerSpread)
}

// describeVerdict describes the target and whether it was met. A noisy row neither meets nor
// misses it. It returns "" for a row without a target.
func describeVerdict(r Result) string {
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
