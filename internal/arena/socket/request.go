package socket

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/shm"
)

// Note [Sockets] A client sends one request of 32 bytes: "shoal", the kind of request ('I' inspect,
// 'O' observe, 'J' join), version in two bytes, layout hash and token (both zero unless the request
// is 'J'). The answer to 'I' is a Report in JSON, and the one to 'O' is an Observation; both end
// with the stream. Programs before version 11 may close without an answer to 'O'. The answer to 'J'
// has 32 bytes; if its status is 0, the control file and the data file are attached. These forms
// must stay the same in all versions, so that programs of two versions can report which versions
// have met.
//
// A connection of another user is refused before anything is read from it. Each connection has a
// deadline. If too many connections are open, the oldest one of the user with the most is closed.
// So silent clients cannot keep others out.
const (
	requestSize   = 32
	answerSize    = 32
	handshakeTime = 5 * time.Second
	reportAge     = 100 * time.Millisecond // an answer is not computed more often
)

// Kinds of requests.
const (
	WantInspect = 'I'
	WantObserve = 'O'
	WantJoin    = 'J'
)

// Status codes of an answer.
const (
	statusOK = iota
	statusToken
	statusVersion
	statusUser
	statusInspectOnly
)

// A Token is the secret that a process needs to join by a socket.
type Token [16]byte

// A Layout identifies the layout of a domain's shared memory. Programs can share a domain only if
// they have the same layout.
type Layout struct {
	Version uint64 // of the protocol; 0 for versions below 9
	Hash    uint64 // of sizes and offsets
}

// Mismatch returns an error that wraps [shm.ErrVersion]: this program has layout l, and the domain
// has the other one.
func (l Layout) Mismatch(domain Layout) error {
	said := fmt.Sprintf("version %d", domain.Version)
	if domain.Version == 0 {
		said = "version below 9"
	}
	return fmt.Errorf("%w: the domain has %s, layout %#x, and this program has version %d, layout %#x: "+
		"build both programs from one version of Shoal", shm.ErrVersion, said, domain.Hash, l.Version, l.Hash)
}

// EncodeRequest encodes a request. want is WantInspect, WantObserve or WantJoin; only a request
// to join contains the layout hash and the token. See Note [Sockets].
func EncodeRequest(want byte, layout Layout, token Token) (req [requestSize]byte) {
	copy(req[:], "shoal")
	req[5] = want
	binary.LittleEndian.PutUint16(req[6:], uint16(layout.Version))
	if want == WantJoin {
		binary.LittleEndian.PutUint64(req[8:], layout.Hash)
		copy(req[16:], token[:])
	}
	return req
}

// EncodeAnswer encodes an answer to a join: status 1, zeroes 3, version 4, layout hash 8, network
// namespace 8, PID namespace 8 bytes.
func EncodeAnswer(status byte, layout Layout) []byte {
	b := make([]byte, answerSize)
	b[0] = status
	binary.LittleEndian.PutUint32(b[4:], uint32(layout.Version))
	binary.LittleEndian.PutUint64(b[8:], layout.Hash)
	binary.LittleEndian.PutUint64(b[16:], namespaceID("net"))
	binary.LittleEndian.PutUint64(b[24:], namespaceID("pid"))
	return b
}

// namespaceID returns the number of this process's namespace of a kind, "net" or "pid", or 0 if
// it cannot be read.
func namespaceID(kind string) uint64 { return sys.Namespace(kind) }
