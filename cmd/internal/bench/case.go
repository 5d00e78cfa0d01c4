package bench

import "context"

// A Case defines one row of a benchmark.
type Case struct {
	Name   string
	Unit   Unit
	Ours   *Probe    // nil if the peer measures it with our partner
	Floor  *Probe    // nil if no bound is known; rows may share it, and each measures it
	Target Target    // nil for none
	Peer   *peerWork // nil if the peer has no equivalent
	Rival  *Rival    // nil if no Go library has an equivalent

	floorWork *peerWork // if not nil, the peer's script measures the floor; rows may share it
}

// A Rival is a Go library that does the same work in the current process. It is reported as a peer.
type Rival struct {
	Name string
	*Probe
}

// A Probe is a repeatable measurement.
type Probe struct {
	// Measure returns one sample in the unit of its row.
	Measure func(ctx context.Context) (float64, error)

	// Once is set for slow measurements. They are measured once, without a warm-up.
	Once bool
}

// A group is a set of rows with the same processes and the same number of rounds. A constructor
// of a suite sets up the processes. close releases them and must be called after the
// measurements.
type group struct {
	rounds int
	cases  []Case
	needs  string       // library without which the group is skipped; may be empty
	close  func() error // may be nil
}

// A Suite is a named set of rows.
type Suite struct {
	Name string
	Doc  string
	peer string // name of the peer's script

	// partner prepares the directory and the environment of the script. It is set for suites in
	// which our side also runs inside the peer; their cases have no Ours. It is nil for all others.
	partner func(ctx context.Context, dir string) (env []string, err error)

	// groups are constructors. Each is called when its group is measured, so that only one group
	// has running processes at a time.
	groups []func(ctx context.Context, h *environment) (group, error)

	// sum computes an additional row from the rows of the suite; nil for none. A result without a
	// name is dropped.
	sum func(rows []Result) Result
}

// Suites returns all suites. The first one is the default.
func Suites() []Suite {
	return []Suite{
		core, first, sizes, syncing, floors, idle, kernels, operations, steps, dtypes, layers, train,
		hogwildSuite, trainingModes, distSuite, loader, files, scale, many, transports,
		torchPeer, torchLight, torchJPEG, pythonSuite,
	}
}
