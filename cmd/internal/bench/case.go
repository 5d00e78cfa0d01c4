package bench

import "context"

// A Case is a row to be measured.
type Case struct {
	Name   string
	Unit   Unit
	Ours   *Probe    // nil where the peer does it with a partner of ours
	Floor  *Probe    // nil where nothing bounds the row; may be shared by the rows of a group
	Target Target    // nil where there is none
	Peer   *peerWork // nil where the peer has no such thing
	Rival  *Rival    // nil where no Go library has
}

// A Rival is a Go library that does the same work in this process. It counts as a peer.
type Rival struct {
	Name string
	*Probe
}

// A Probe is something that can be measured again and again.
type Probe struct {
	// Measure returns one value, in the unit of its row.
	Measure func(ctx context.Context) (float64, error)

	// Once is for what takes long: it is measured once, without a warm-up.
	Once bool
}

// A group is rows that are measured in turn, round by round.
type group struct {
	rounds int
	cases  []Case
	close  func() error // may be nil
}

// A Suite is a set of rows with a name.
type Suite struct {
	Name string
	Doc  string
	peer string // the script that does the same

	// partner prepares the script's directory and its environment, for a suite that needs the peer
	// for its own side as well: its cases have no Ours. Nil for others.
	partner func(ctx context.Context, dir string) (env []string, err error)

	// groups set up what they need when they are called, so that only one group has processes at a
	// time.
	groups []func(ctx context.Context, h *environment) (group, error)

	// sum makes a row of those of the suite; nil for none. A row without a name is none.
	sum func(rows []Result) Result
}

// Suites returns all suites, the default one first.
func Suites() []Suite {
	return []Suite{
		core, sizes, syncing, floors, idle, kernels, operations, dtypes, layers, train, hogwildSuite, trainingModes,
		distSuite, loader, files, scale, transports,
		torchPeer, torchLight, torchJPEG,
	}
}
