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

// Note [The handshake]
// Whoever accepts a connection delivers a challenge and then answers one; whoever dials answers first. A challenge is random
// bytes, and its answer their HMAC. Up to Python 3.11 that is always MD5. From 3.12 on a challenge begins with the name of a digest
// in braces, which is part of what is authenticated, and so does the answer; old answers are still accepted. So this package
// sends new challenges, answers in the form of what it gets, and accepts both: that works with every version in either role.

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

// authServer is the handshake of whoever accepted the connection.
func authServer(rw io.ReadWriter, key []byte) error {
	if err := deliverChallenge(rw, key); err != nil {
		return err
	}
	return answerChallenge(rw, key)
}

// authClient is the handshake of whoever dialled.
func authClient(rw io.ReadWriter, key []byte) error {
	if err := answerChallenge(rw, key); err != nil {
		return err
	}
	return deliverChallenge(rw, key)
}

func deliverChallenge(rw io.ReadWriter, key []byte) error {
	message := append([]byte("{"+modernDigest+"}"), make([]byte, modernRandom)...)
	rand.Read(message[len(message)-modernRandom:])
	if err := writeFrame(rw, append([]byte(challenge), message...)); err != nil {
		return fmt.Errorf("authenticate: %w", err)
	}
	response, err := readAuth(rw)
	if err != nil {
		return err
	}
	if !verify(key, message, response) {
		_ = writeFrame(rw, []byte(failure)) // the failure is what is to be told
		return fmt.Errorf("%w: the other side has another key", ErrAuth)
	}
	return writeFrame(rw, []byte(welcome))
}

func answerChallenge(rw io.ReadWriter, key []byte) error {
	message, err := readAuth(rw)
	if err != nil {
		return err
	}
	message, ok := bytes.CutPrefix(message, []byte(challenge))
	if !ok {
		return fmt.Errorf("%w: no challenge came; does the other side have an authkey?", ErrAuth)
	}
	name, _, err := splitDigest(message, legacyRandom)
	if err != nil {
		return err
	}
	if err := writeFrame(rw, respond(key, message, name)); err != nil {
		return fmt.Errorf("authenticate: %w", err)
	}
	verdict, err := readAuth(rw)
	if err != nil {
		return err
	}
	if string(verdict) != welcome {
		return fmt.Errorf("%w: the other side refused the key", ErrAuth)
	}
	return nil
}

func readAuth(r io.Reader) ([]byte, error) {
	b, err := readFrame(r, authLimit)
	if err != nil {
		return nil, fmt.Errorf("authenticate: %w", cutShort(err))
	}
	return b, nil
}

// respond returns the answer to a message, in the form of the digest of that name; "" is the form of Python 3.11.
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

// splitDigest separates the name of a digest from what follows it. What has exactly legacy bytes has no name.
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
