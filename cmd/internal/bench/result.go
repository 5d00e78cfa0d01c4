package bench

// A Unit is the unit of a value.
type Unit string

// Units of values.
const (
	Nanoseconds Unit = "ns"
	PerSecond   Unit = "1/s"
	Flops       Unit = "FLOP/s"
	Bytes       Unit = "B"
	Ratio       Unit = "ratio"
)

// A Result is a measured row. Its JSON encoding is meant for programs.
type Result struct {
	Suite  string  `json:"suite"`
	Name   string  `json:"name"`
	Value  float64 `json:"value"`  // median
	Unit   Unit    `json:"unit"`   //
	Spread float64 `json:"spread"` // (p90 - p10) / median

	// Floor is the lower bound on this machine in the same unit. RatioToFloor is the cost relative
	// to it; 1 is optimal.
	Floor        float64 `json:"floor,omitempty"`
	RatioToFloor float64 `json:"ratio_to_floor,omitempty"`

	// Peer is the name of the software compared with, and PeerValue its value for the same work.
	// RatioToPeer is greater than 1 if this row is better.
	Peer        string  `json:"peer,omitempty"`
	PeerValue   float64 `json:"peer_value,omitempty"`
	PeerSpread  float64 `json:"peer_spread,omitempty"`
	RatioToPeer float64 `json:"ratio_to_peer,omitempty"`

	// Noisy means that the spread of this row or of its peer is too large for a verdict on the
	// target.
	Noisy bool `json:"noisy,omitempty"`

	// Target describes the value that the row should reach. Met reports whether it does.
	Target string `json:"-"`
	Met    bool   `json:"-"`
}

// ratioOf returns how many times better a is than b: a/b for rates and b/a for costs. It returns
// 0 if the divisor is 0.
func (u Unit) ratioOf(a, b float64) float64 {
	if u == PerSecond || u == Flops {
		a, b = b, a
	}
	if a == 0 {
		return 0
	}
	return b / a
}

// newResult computes a row without a peer from the samples of our side and of the floor. floor
// may be empty.
func newResult(c Case, ours, floor []float64) Result {
	r := Result{Name: c.Name, Unit: c.Unit, Value: median(ours), Spread: spread(ours)}
	if len(floor) > 0 {
		r.Floor = median(floor)
		r.RatioToFloor = c.Unit.ratioOf(r.Floor, r.Value)
	}
	return r
}

// largerSpread returns the larger of the two spreads.
func (r *Result) largerSpread() float64 { return max(r.Spread, r.PeerSpread) }

// setPeer stores the best variant of a peer in the result, by the median. It ignores variants
// without samples. The value of r must be set.
func (r *Result) setPeer(variants []variant) {
	for _, v := range variants {
		m := median(v.samples)
		if len(v.samples) == 0 || r.Peer != "" && r.Unit.ratioOf(r.PeerValue, m) >= 1 {
			continue
		}
		r.Peer, r.PeerValue, r.PeerSpread = v.name, m, spread(v.samples)
		r.RatioToPeer = r.Unit.ratioOf(r.Value, m)
	}
}

// A variant is one of a peer's implementations of a row, with its samples.
type variant struct {
	name    string
	samples []float64
}
