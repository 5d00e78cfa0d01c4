package bench

import "fmt"

// A Target says what a row should reach: as a text, and whether the result has. before are the
// results of the run so far.
type Target func(r Result, before []Result) (text string, met bool)

// overFloor wants at most limit times the floor.
func overFloor(limit float64) Target {
	return func(r Result, _ []Result) (string, bool) {
		return fmt.Sprintf("≤ %.3g × floor", limit), r.RatioToFloor <= limit
	}
}

// both wants one and the other.
func both(a, b Target) Target {
	return func(r Result, before []Result) (string, bool) {
		one, metOne := a(r, before)
		other, metOther := b(r, before)
		if one != "" && other != "" {
			one += ", "
		}
		return one + other, metOne && metOther
	}
}

// farLine is the round trip of a cache line, in ns, above which two processors are far apart: in
// other sockets, or placed so by a host.
const farLine = 300

// byDistance wants less where the machine's processors are far apart, and the floor, a spinning
// cache line, shows it.
func byDistance(near, far Target) Target {
	return func(r Result, before []Result) (string, bool) {
		if r.Floor > farLine {
			return far(r, before)
		}
		return near(r, before)
	}
}

// atMost wants a cost of at most limit, which is shown as text.
func atMost(limit float64, text string) Target {
	return func(r Result, _ []Result) (string, bool) { return "≤ " + text, r.Value <= limit }
}

// atLeast wants a rate.
func atLeast(limit float64, text string) Target {
	return func(r Result, _ []Result) (string, bool) { return "≥ " + text, r.Value >= limit }
}

// timesPeer wants to be so many times better than the best peer; without a peer it is what alone
// says, if anything.
func timesPeer(times float64, alone ...Target) Target {
	return func(r Result, before []Result) (text string, met bool) {
		switch {
		case r.Peer != "":
			return fmt.Sprintf("≥ %.3g × peer", times), r.RatioToPeer >= times
		case len(alone) > 0:
			return alone[0](r, before)
		}
		return "", true
	}
}

// besidesFloor wants at most so much more than the floor.
func besidesFloor(more float64, text string) Target {
	return func(r Result, _ []Result) (string, bool) { return "≤ floor + " + text, r.Value <= r.Floor+more }
}

// keeps wants at least that share of the rate of another row, which comes before.
func keeps(share float64, other string) Target {
	return func(r Result, before []Result) (string, bool) {
		met := false
		for _, b := range before {
			met = met || b.Name == other && r.Value >= share*b.Value
		}
		return fmt.Sprintf("≥ %.3g × %s", share, other), met
	}
}

// asFlatAs wants at most limit times the value of another row, which is measured in the same group
// and comes before.
func asFlatAs(other string, limit float64) Target {
	return func(r Result, before []Result) (string, bool) {
		met := false
		for _, b := range before {
			met = met || b.Name == other && r.Value <= limit*b.Value
		}
		return fmt.Sprintf("≤ %.3g × %s", limit, other), met
	}
}
