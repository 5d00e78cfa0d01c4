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

// Note [The handshake] The accepting side delivers a challenge and then answers one; the dialling
// side answers first. A challenge is random bytes, and its answer is their HMAC. Up to Python 3.11
// the HMAC is always of MD5. From 3.12 on a challenge begins with the name of a digest in braces,
// which is part of the authenticated bytes. The answer begins with a name as well, and old answers
// are still accepted. So this package sends new challenges, answers in the form of the challenge,
// and accepts both forms. That works with every version in either role.

const (
	challenge = "#CHALLENGE#"
	welcome   = "#WELCOME#"
	failure   = "#FAILURE#"

	authLimit    = 256 // bytes of a message of the handshake
	modernDigest = "sha256"
	modernRandom = 40
	legacyRandom = 20
)

var digests = map[string]func() hash.Hash{
	"md5": md5.New, "sha256": sha256.New, "sha384": sha512.New384,
	"sha3_256": func() hash.Hash { return sha3.New256() },
	"sha3_384": func() hash.Hash { return sha3.New384() },
}

// authServer does the handshake of the side that has accepted the connection.
func authServer(rw io.ReadWriter, key []byte) error {
	message := newChallenge()
	if err := writeFrame(rw, append([]byte(challenge), message...)); err != nil {
		return fmt.Errorf("authenticate: %w", err)
	}
	if err := readProof(rw, key, message); err != nil {
		_ = writeFrame(rw, []byte(failure)) // the other side is told the failure
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

// authClient does the handshake of the side that has dialled, with the messages that follow it. It
// sends the answer to the first challenge together with everything else that it has to say, and
// with its welcome: the listening side never waits for it again. A listener without the key learns
// only these messages. The error comes before authClient reads anything further from that listener.
func authClient(rw io.ReadWriter, key []byte, follow ...[]byte) error {
	proof, err := readChallenge(rw, key)
	if err != nil {
		return err
	}
	message := newChallenge()
	var out bytes.Buffer
	for _, b := range append([][]byte{proof, append([]byte(challenge), message...), []byte(welcome)}, follow...) {
		_ = writeFrame(&out, b) // a buffer takes any frame
	}
	if _, err := rw.Write(out.Bytes()); err != nil {
		return fmt.Errorf("authenticate: %w", err)
	}
	if err := readVerdict(rw); err != nil {
		return err
	}
	return readProof(rw, key, message)
}

// newChallenge returns the bytes to be authenticated.
func newChallenge() []byte {
	message := append([]byte("{"+modernDigest+"}"), make([]byte, modernRandom)...)
	rand.Read(message[len(message)-modernRandom:])
	return message
}

// readProof reads the answer to message.
func readProof(r io.Reader, key, message []byte) error {
	proof, err := readAuth(r)
	if err == nil && !verify(key, message, proof) {
		err = fmt.Errorf("%w: the other side has another key", ErrAuth)
	}
	return err
}

// readChallenge reads a challenge, and returns the answer to it.
func readChallenge(r io.Reader, key []byte) ([]byte, error) {
	message, err := readAuth(r)
	if err != nil {
		return nil, err
	}
	message, ok := bytes.CutPrefix(message, []byte(challenge))
	if !ok {
		return nil, fmt.Errorf("%w: no challenge came; does the other side have an authkey?", ErrAuth)
	}
	name, _, err := splitDigest(message, legacyRandom)
	if err != nil {
		return nil, err
	}
	return respond(key, message, name), nil
}

func readVerdict(r io.Reader) error {
	verdict, err := readAuth(r)
	if err == nil && string(verdict) != welcome {
		err = fmt.Errorf("%w: the other side refused the key", ErrAuth)
	}
	return err
}

func readAuth(r io.Reader) ([]byte, error) {
	b, err := readFrame(r, authLimit)
	if err != nil {
		return nil, fmt.Errorf("authenticate: %w", cutShort(err))
	}
	return b, nil
}

// respond returns the answer to a message, in the form of the digest of that name. The name ""
// stands for the form of Python 3.11.
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

// splitDigest separates the name of a digest from the bytes behind it. A message of exactly legacy
// bytes has no name.
func splitDigest(b []byte, legacy int) (name string, rest []byte, err error) {
	if len(b) == legacy {
		return "", b, nil
	}
	inside, ok := bytes.CutPrefix(b, []byte("{"))
	word, rest, found := bytes.Cut(inside, []byte("}"))
	if !ok || !found || digests[string(word)] == nil {
		return "", nil, fmt.Errorf("%w: %d bytes without a digest that is known", ErrAuth, len(b))
	}
	return string(word), rest, nil
}
