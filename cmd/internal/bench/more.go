package bench

import "context"

// PeerWork is a request to a peer, made by [AskPeer], for the field Peer of a [Case].
type PeerWork = peerWork

// AskPeer returns the request for the operation op of a peer's script. size is in bytes.
func AskPeer(op string, size, rounds int) *PeerWork {
	return &PeerWork{op: op, Size: size, Rounds: rounds}
}

// NewSuite returns a suite for Options.More. Such suites belong to packages that this one must
// not import, because it is linked into a static command. rounds is the number of samples of
// each measurement. rows must set up the measurements and return a function that releases them,
// or nil; scale reduces a number of rounds in a quick run. peer is the script in bench/peers
// that does the same work.
func NewSuite(name, doc, peer string, rounds int,
	rows func(ctx context.Context, scale func(n int) int) ([]Case, func() error, error)) Suite {
	return Suite{Name: name, Doc: doc, peer: peer, groups: []func(context.Context, *environment) (group, error){
		func(ctx context.Context, h *environment) (group, error) {
			cases, end, err := rows(ctx, h.scaleRounds)
			return group{rounds: rounds, cases: cases, close: end}, err
		},
	}}
}
