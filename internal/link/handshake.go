package link

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"github.com/shoal-mp/shoal/internal/sys"
)

var (
	// ErrKey is returned on both sides when they do not have the same key.
	ErrKey = errors.New("link: wrong key")
	// ErrPeer is returned when the other side does not speak this protocol, or another version of
	// it.
	ErrPeer = errors.New("link: not a peer of this version")
)

// Note [Handshake]
//
//	server   hello 8 | nonce 32
//	client   hello 8 | nonce 32 | proof 32
//	server   status 1 | proof 32         status 0, or 1 and zeroes
//
// A proof is HMAC-SHA256 by the key of: the name of the side that proves it, the server's nonce,
// the client's nonce, the binding. The names of the two sides keep one side's proof from being sent
// back to it, the nonces keep an old one from being used again, and the binding, which on TLS is a
// secret of this very connection, keeps a proof from being passed on by somebody in the middle.
const (
	nonceSize = 32
	proofSize = sha256.Size
)

var helloBytes = []byte{'s', 'h', 'o', 'a', 'l', 'L', 3, 0} // the last two are the version, little-endian

// Server proves the key to the client at the other end of rw, and has it proven. The caller sets a
// deadline.
func Server(rw io.ReadWriter, key, binding []byte) error {
	if err := usable(key); err != nil {
		return err
	}
	ours, err := nonce()
	if err != nil {
		return err
	}
	if _, err := rw.Write(append(bytes.Clone(helloBytes), ours...)); err != nil {
		return fmt.Errorf("greet the client: %w", err)
	}
	answer := make([]byte, len(helloBytes)+nonceSize+proofSize)
	if err := read(rw, answer); err != nil {
		return err
	}
	theirs := answer[len(helloBytes) : len(helloBytes)+nonceSize]
	if !hmac.Equal(answer[len(helloBytes)+nonceSize:], proof(key, "client", ours, theirs, binding)) {
		rw.Write(append([]byte{1}, make([]byte, proofSize)...)) // so that the client can say why
		return ErrKey
	}
	_, err = rw.Write(append([]byte{0}, proof(key, "server", ours, theirs, binding)...))
	return err
}

// Client is the other side of Server.
func Client(rw io.ReadWriter, key, binding []byte) error {
	if err := usable(key); err != nil {
		return err
	}
	greeting := make([]byte, len(helloBytes)+nonceSize)
	if err := read(rw, greeting); err != nil {
		return err
	}
	theirs := greeting[len(helloBytes):]
	ours, err := nonce()
	if err != nil {
		return err
	}
	answer := append(bytes.Clone(helloBytes), ours...)
	if _, err := rw.Write(append(answer, proof(key, "client", theirs, ours, binding)...)); err != nil {
		return fmt.Errorf("answer the server: %w", err)
	}
	verdict := make([]byte, 1+proofSize)
	if _, err := io.ReadFull(rw, verdict); err != nil {
		return fmt.Errorf("%w: %w", ErrPeer, err)
	}
	if verdict[0] != 0 || !hmac.Equal(verdict[1:], proof(key, "server", theirs, ours, binding)) {
		return ErrKey
	}
	return nil
}

func usable(key []byte) error {
	if len(key) == 0 {
		return fmt.Errorf("%w: it is empty", ErrKey)
	}
	return nil
}

// read fills b, which begins with the hello.
func read(r io.Reader, b []byte) error {
	if _, err := io.ReadFull(r, b[:len(helloBytes)]); err != nil {
		return fmt.Errorf("%w: %w", ErrPeer, err)
	}
	if !bytes.Equal(b[:len(helloBytes)], helloBytes) {
		return fmt.Errorf("%w: it begins with %q", ErrPeer, b[:len(helloBytes)])
	}
	if _, err := io.ReadFull(r, b[len(helloBytes):]); err != nil {
		return fmt.Errorf("%w: %w", ErrPeer, err)
	}
	return nil
}

func nonce() ([]byte, error) {
	b := make([]byte, nonceSize)
	return b, sys.Random(b)
}

func proof(key []byte, who string, server, client, binding []byte) []byte {
	h := hmac.New(sha256.New, key)
	for _, part := range [][]byte{[]byte("shoal link " + who), server, client, binding} {
		h.Write(part)
	}
	return h.Sum(nil)
}
