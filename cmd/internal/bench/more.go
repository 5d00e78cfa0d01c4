package bench

import "context"

// PeerWork is what a peer is asked for.
type PeerWork = peerWork

// AskPeer returns the work of a row that a peer's script knows as op. size are bytes.
func AskPeer(op string, size, rounds int) *PeerWork {
	return &PeerWork{op: op, Size: size, Rounds: rounds}
}

// NewSuite returns a suite for Options.More: rows of packages that this one, which stands behind a
// static command, may not import. rows sets up what they need, with scale to make a number of
// rounds smaller in a quick run, and returns what ends it; peer is the script in bench/peers that
// does the same.
func NewSuite(name, doc, peer string, rounds int,
	rows func(ctx context.Context, scale func(n int) int) ([]Case, func() error, error)) Suite {
	return Suite{Name: name, Doc: doc, peer: peer, groups: []func(context.Context, *environment) (group, error){
		func(ctx context.Context, h *environment) (group, error) {
			cases, end, err := rows(ctx, h.scale)
			return group{rounds: rounds, cases: cases, close: end}, err
		},
	}}
}
