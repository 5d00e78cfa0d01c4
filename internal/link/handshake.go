package link

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/shoal-mp/shoal/internal/sys"
)

var (
	// ErrKey is returned on both sides if they have different keys, or if a man in the middle
	// relayed the proof.
	ErrKey = errors.New("link: wrong key")
	// ErrPeer is returned if the peer does not speak this protocol, or speaks another version of
	// it.
	ErrPeer = errors.New("link: peer is not a Shoal process of this version")
)

// Note [Handshake]
//
//	server   hello 8 | place 8 | nonce 32
//	client   hello 8 | place 8 | nonce 32 | proof 32
//	server   status 1 | proof 32         status 0, or 1 and zeroes
//
// A proof is the HMAC-SHA256, with the key, of: the role of the side that proves it, the server's
// place and nonce, the client's place and nonce, the binding. The roles prevent reflection of a
// proof, and the nonces prevent replay. The binding prevents that a man in the middle relays a
// proof. With TLS it is a secret exported from the connection. On a Unix socket it contains the
// process ids of both ends, if they are in the same PID namespace, which is the place.
const (
	placeSize = 8
	nonceSize = 32
	saidSize  = placeSize + nonceSize // place and nonce of a side
	proofSize = sha256.Size
)

// All versions have the hello in common. Each side sends its hello before it rejects the other's
// version, so that both can report both versions.
var helloBytes = []byte{'s', 'h', 'o', 'a', 'l', 'L', 5, 0} // the last two bytes are the version, little-endian

const helloName = 6 // number of bytes that are the same in all versions

// Server proves the key to the client at the other end of rw, and verifies the client's proof.
// bound must be the server's Binding of the connection. The caller must set a deadline on rw.
// Server returns [ErrKey] if key is empty or the client's proof is wrong, and [ErrPeer] if the
// client does not speak this version of the protocol.
func Server(rw io.ReadWriter, key []byte, bound Binding) error {
	if err := checkKey(key); err != nil {
		return err
	}
	ours, err := bound.placeAndNonce()
	if err != nil {
		return err
	}
	if _, err := rw.Write(append(bytes.Clone(helloBytes), ours...)); err != nil {
		return fmt.Errorf("send challenge to the client: %w", err)
	}
	answer := make([]byte, len(helloBytes)+saidSize+proofSize)
	if err := readHello(rw, answer); err != nil {
		return err
	}
	theirs, proven := answer[len(helloBytes):][:saidSize], answer[len(helloBytes)+saidSize:]
	binding := bound.bytesFor(placeOf(theirs))
	if !hmac.Equal(proven, computeProof(key, "client", ours, theirs, binding)) {
		rw.Write(append([]byte{1}, make([]byte, proofSize)...)) // lets the client report the cause
		return ErrKey
	}
	_, err = rw.Write(append([]byte{0}, computeProof(key, "server", ours, theirs, binding)...))
	return err
}

// Client is the client's side of [Server]. bound must be the client's Binding of the connection.
func Client(rw io.ReadWriter, key []byte, bound Binding) error {
	if err := checkKey(key); err != nil {
		return err
	}
	greeting := make([]byte, len(helloBytes)+saidSize)
	if err := readHello(rw, greeting); err != nil {
		if bytes.HasPrefix(greeting, helloBytes[:helloName]) {
			rw.Write(helloBytes) // lets a server of another version report the cause
		}
		return err
	}
	theirs := greeting[len(helloBytes):]
	ours, err := bound.placeAndNonce()
	if err != nil {
		return err
	}
	binding := bound.bytesFor(placeOf(theirs))
	answer := append(bytes.Clone(helloBytes), ours...)
	if _, err := rw.Write(append(answer, computeProof(key, "client", theirs, ours, binding)...)); err != nil {
		return fmt.Errorf("answer the server: %w", err)
	}
	verdict := make([]byte, 1+proofSize)
	if _, err := io.ReadFull(rw, verdict); err != nil {
		return fmt.Errorf("%w: %w", ErrPeer, err)
	}
	if verdict[0] != 0 || !hmac.Equal(verdict[1:], computeProof(key, "server", theirs, ours, binding)) {
		return ErrKey
	}
	return nil
}

func checkKey(key []byte) error {
	if len(key) == 0 {
		return fmt.Errorf("%w: key is empty", ErrKey)
	}
	return nil
}

// readHello reads len(b) bytes, which begin with the peer's hello. The error wraps [ErrPeer] if the
// hello is not valid or r returns an error.
func readHello(r io.Reader, b []byte) error {
	if _, err := io.ReadFull(r, b[:len(helloBytes)]); err != nil {
		return fmt.Errorf("%w: %w", ErrPeer, err)
	}
	if !bytes.HasPrefix(b, helloBytes[:helloName]) {
		return fmt.Errorf("%w: its first bytes are %q", ErrPeer, b[:len(helloBytes)])
	}
	if !bytes.HasPrefix(b, helloBytes) {
		return fmt.Errorf("%w: it has protocol version %d, and this program has version %d: "+
			"build both from one version of Shoal", ErrPeer, binary.LittleEndian.Uint16(b[helloName:]),
			binary.LittleEndian.Uint16(helloBytes[helloName:]))
	}
	if _, err := io.ReadFull(r, b[len(helloBytes):]); err != nil {
		return fmt.Errorf("%w: %w", ErrPeer, err)
	}
	return nil
}

// placeAndNonce returns 8 bytes with the place of this side, which is its PID namespace or 0,
// followed by a new nonce.
func (b Binding) placeAndNonce() ([]byte, error) {
	said := binary.LittleEndian.AppendUint64(make([]byte, 0, saidSize), b.place)[:saidSize]
	return said, sys.Random(said[placeSize:])
}

func placeOf(said []byte) uint64 { return binary.LittleEndian.Uint64(said) }

func computeProof(key []byte, who string, server, client, binding []byte) []byte {
	h := hmac.New(sha256.New, key)
	for _, part := range [][]byte{[]byte("shoal link " + who), server, client, binding} {
		h.Write(part)
	}
	return h.Sum(nil)
}
