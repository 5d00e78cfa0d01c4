package bench

import "fmt"

// A Target returns a description of the value that a row should reach, and whether the result
// reaches it. The text is empty if there is no requirement for this row. before holds the
// earlier results of the run.
type Target func(r Result, before []Result) (text string, met bool)

// overFloor requires at most limit times the floor.
func overFloor(limit float64) Target {
	return func(r Result, _ []Result) (string, bool) {
		return fmt.Sprintf("≤ %.3g × floor", limit), r.RatioToFloor <= limit
	}
}

// bothTargets requires that both targets are met.
func bothTargets(a, b Target) Target {
	return func(r Result, before []Result) (string, bool) {
		one, metOne := a(r, before)
		other, metOther := b(r, before)
		if one != "" && other != "" {
			one += ", "
		}
		return one + other, metOne && metOther
	}
}

// farLine is the cache line round trip in ns above which two processors are considered far apart,
// for example in different sockets or placed so by a hypervisor.
const farLine = 300

// byDistance selects the target far if the row's floor, a cache line round trip, exceeds [farLine],
// and near otherwise.
func byDistance(near, far Target) Target {
	return func(r Result, before []Result) (string, bool) {
		if r.Floor > farLine {
			return far(r, before)
		}
		return near(r, before)
	}
}

// atMost requires a cost of at most limit. text is its description.
func atMost(limit float64, text string) Target {
	return func(r Result, _ []Result) (string, bool) { return "≤ " + text, r.Value <= limit }
}

// atLeast requires a rate of at least limit. text is its description.
func atLeast(limit float64, text string) Target {
	return func(r Result, _ []Result) (string, bool) { return "≥ " + text, r.Value >= limit }
}

// timesPeer requires a value that is times better than the best peer. Without a peer, the target
// alone applies, if given.
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

// aboveFloor requires a cost of at most the floor plus more, in the unit of the row. text
// describes more.
func aboveFloor(more float64, text string) Target {
	return func(r Result, _ []Result) (string, bool) { return "≤ floor + " + text, r.Value <= r.Floor+more }
}

// keepsShare requires at least a share of the value of other, an earlier row of the run. It is
// not met if there is no such row.
func keepsShare(share float64, other string) Target {
	return func(r Result, before []Result) (string, bool) {
		met := false
		for _, b := range before {
			met = met || b.Name == other && r.Value >= share*b.Value
		}
		return fmt.Sprintf("≥ %.3g × %s", share, other), met
	}
}

// atMostTimes requires at most limit times the value of other, an earlier row of the run. It is
// not met if there is no such row.
func atMostTimes(other string, limit float64) Target {
	return func(r Result, before []Result) (string, bool) {
		met := false
		for _, b := range before {
			met = met || b.Name == other && r.Value <= limit*b.Value
		}
		return fmt.Sprintf("≤ %.3g × %s", limit, other), met
	}
}
