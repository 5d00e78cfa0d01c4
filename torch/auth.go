package torch

import (
	"bytes"
	"crypto/hmac"
	"crypto/md5"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha3"
	"crypto/sha512"
	"fmt"
	"hash"
	"io"
)

// Note [The handshake] The accepting side sends a challenge and then answers one; the dialing side
// answers first. A challenge consists of random bytes, and the answer is their HMAC under the
// authkey. Up to Python 3.11 the HMAC always uses MD5. Since Python 3.12, a challenge starts with
// the name of a digest in braces, which is part of the authenticated bytes, and the answer starts
// with a name too; answers in the old form are still accepted. This package sends challenges in the
// new form, answers in the form of the challenge, and accepts both forms. It therefore
// interoperates with every version in either role. See deliver_challenge and answer_challenge in
// https://github.com/python/cpython/blob/v3.13.0/Lib/multiprocessing/connection.py.

const (
	challenge = "#CHALLENGE#"
	welcome   = "#WELCOME#"
	failure   = "#FAILURE#"

	authLimit    = 256 // the limit of a handshake message, in bytes
	modernDigest = "sha256"
	modernRandom = 40
	legacyRandom = 20
)

var digests = map[string]func() hash.Hash{
	"md5": md5.New, "sha256": sha256.New, "sha384": sha512.New384,
	"sha3_256": func() hash.Hash { return sha3.New256() },
	"sha3_384": func() hash.Hash { return sha3.New384() },
}

// authServer performs the handshake of the accepting side over rw. It returns nil if both sides
// have proved that they know key. The error wraps [ErrAuth] if the keys differ.
func authServer(rw io.ReadWriter, key []byte) error {
	message := newChallenge()
	if err := writeFrame(rw, append([]byte(challenge), message...)); err != nil {
		return fmt.Errorf("authenticate: %w", err)
	}
	if err := readProof(rw, key, message); err != nil {
		_ = writeFrame(rw, []byte(failure)) // the peer must learn of the failure
		return err
	}
	if err := writeFrame(rw, []byte(welcome)); err != nil {
		return fmt.Errorf("authenticate: %w", err)
	}
	proof, err := readChallenge(rw, key)
	if err != nil {
		return err
	}
	if err := writeFrame(rw, proof); err != nil {
		return fmt.Errorf("authenticate: %w", err)
	}
	return readVerdict(rw)
}

// authClient performs the handshake of the dialing side. It writes the answer to the first
// challenge, its own challenge, its welcome and the follow messages in a single write, so that the
// accepting side never waits for a second one. A listener that does not know the key therefore
// reads the follow messages, but authClient returns an error before it reads anything beyond the
// handshake. The error wraps [ErrAuth] if the keys differ.
func authClient(rw io.ReadWriter, key []byte, follow ...[]byte) error {
	proof, err := readChallenge(rw, key)
	if err != nil {
		return err
	}
	message := newChallenge()
	var out bytes.Buffer
	for _, b := range append([][]byte{proof, append([]byte(challenge), message...), []byte(welcome)}, follow...) {
		_ = writeFrame(&out, b) // a write to a buffer cannot fail
	}
	if _, err := rw.Write(out.Bytes()); err != nil {
		return fmt.Errorf("authenticate: %w", err)
	}
	if err := readVerdict(rw); err != nil {
		return err
	}
	return readProof(rw, key, message)
}

// newChallenge returns a random challenge in the form of Python 3.12.
func newChallenge() []byte {
	message := append([]byte("{"+modernDigest+"}"), make([]byte, modernRandom)...)
	rand.Read(message[len(message)-modernRandom:])
	return message
}

// readProof reads and verifies the answer to the challenge message. The error wraps [ErrAuth] if
// the answer does not prove knowledge of key.
func readProof(r io.Reader, key, message []byte) error {
	proof, err := nextMessage(r)
	if err == nil && !verify(key, message, proof) {
		err = fmt.Errorf("%w: the peer has another authkey", ErrAuth)
	}
	return err
}

// readChallenge reads a challenge and returns the answer to it under key. The error wraps
// [ErrAuth] if the message is no challenge, as from a peer without an authkey.
func readChallenge(r io.Reader, key []byte) ([]byte, error) {
	message, err := nextMessage(r)
	if err != nil {
		return nil, err
	}
	message, ok := bytes.CutPrefix(message, []byte(challenge))
	if !ok {
		return nil, fmt.Errorf("%w: got no challenge: check that the peer has an authkey", ErrAuth)
	}
	name, _, err := splitDigest(message, legacyRandom)
	if err != nil {
		return nil, err
	}
	return respond(key, message, name), nil
}

func readVerdict(r io.Reader) error {
	verdict, err := nextMessage(r)
	if err == nil && string(verdict) != welcome {
		err = fmt.Errorf("%w: the peer rejected the authkey", ErrAuth)
	}
	return err
}

// nextMessage reads the next message of the handshake, of at most authLimit bytes. The error
// wraps [ErrTooLong] for a longer one, and [io.ErrUnexpectedEOF] if the peer has disconnected.
func nextMessage(r io.Reader) ([]byte, error) {
	b, err := nextFrame(r, authLimit)
	if err != nil {
		return nil, fmt.Errorf("authenticate: %w", truncatedError(err))
	}
	return b, nil
}

// respond returns the answer to the challenge message under key, with the digest of the given
// name, which must be in digests. If the name is "", the answer has the form of Python 3.11.
func respond(key, message []byte, name string) []byte {
	if name == "" {
		return mac(key, message, "md5")
	}
	return append([]byte("{"+name+"}"), mac(key, message, name)...)
}

func verify(key, message, response []byte) bool {
	name, sum, err := splitDigest(response, md5.Size)
	if err != nil {
		return false
	}
	if name == "" {
		name = "md5"
	}
	return hmac.Equal(sum, mac(key, message, name))
}

func mac(key, message []byte, name string) []byte {
	h := hmac.New(digests[name], key)
	h.Write(message)
	return h.Sum(nil)
}

// splitDigest splits a challenge or an answer into the name of the digest and the rest. A message
// of exactly legacy bytes has the form of Python 3.11, without a name. The error wraps [ErrAuth] if
// the message names no known digest.
func splitDigest(b []byte, legacy int) (name string, rest []byte, err error) {
	if len(b) == legacy {
		return "", b, nil
	}
	inside, ok := bytes.CutPrefix(b, []byte("{"))
	word, rest, found := bytes.Cut(inside, []byte("}"))
	if !ok || !found || digests[string(word)] == nil {
		return "", nil, fmt.Errorf("%w: message of %d bytes names no known digest", ErrAuth, len(b))
	}
	return string(word), rest, nil
}
