package bench

// A Unit says what a value counts.
type Unit string

// The units.
const (
	Nanoseconds Unit = "ns"
	PerSecond   Unit = "1/s"
	Flops       Unit = "FLOP/s"
	Bytes       Unit = "B"
	Ratio       Unit = "ratio"
)

// A Result is one row as it was measured. Its JSON form is what programs read.
type Result struct {
	Suite  string  `json:"suite"`
	Name   string  `json:"name"`
	Value  float64 `json:"value"`  // median
	Unit   Unit    `json:"unit"`   //
	Spread float64 `json:"spread"` // (p90 - p10) / median

	// Floor is the least that the machine allows, in the same unit, and RatioToFloor how many times
	// more is paid: 1 is the limit.
	Floor        float64 `json:"floor,omitempty"`
	RatioToFloor float64 `json:"ratio_to_floor,omitempty"`

	// Peer is what the same work was measured with, PeerValue what that needed, and RatioToPeer how
	// many times better this row is.
	Peer        string  `json:"peer,omitempty"`
	PeerValue   float64 `json:"peer_value,omitempty"`
	PeerSpread  float64 `json:"peer_spread,omitempty"`
	RatioToPeer float64 `json:"ratio_to_peer,omitempty"`

	// Noisy is that the samples of this row, or of its peer, lie too far apart to say anything
	// about a target.
	Noisy bool `json:"noisy,omitempty"`

	// Target is what the row should reach, and Met whether it has.
	Target string `json:"-"`
	Met    bool   `json:"-"`
}

// better returns how many times better a is than b: a rate is better when it is higher, a cost when
// it is lower.
func (u Unit) better(a, b float64) float64 {
	if u == PerSecond || u == Flops {
		a, b = b, a
	}
	if a == 0 {
		return 0
	}
	return b / a
}

// newResult computes a row from its samples. floor is empty where there is none.
func newResult(c Case, ours, floor []float64) Result {
	r := Result{Name: c.Name, Unit: c.Unit, Value: median(ours), Spread: spread(ours)}
	if len(floor) > 0 {
		r.Floor = median(floor)
		r.RatioToFloor = c.Unit.better(r.Floor, r.Value)
	}
	return r
}

// noise is the larger of the two spreads.
func (r *Result) noise() float64 { return max(r.Spread, r.PeerSpread) }

// against adds what a peer needed: the best of its variants.
func (r *Result) against(variants []variant) {
	for _, v := range variants {
		m := median(v.samples)
		if len(v.samples) == 0 || r.Peer != "" && r.Unit.better(r.PeerValue, m) >= 1 {
			continue
		}
		r.Peer, r.PeerValue, r.PeerSpread = v.name, m, spread(v.samples)
		r.RatioToPeer = r.Unit.better(r.Value, m)
	}
}

// A variant is one way in which a peer can do a row's work, and what was measured.
type variant struct {
	name    string
	samples []float64
}
