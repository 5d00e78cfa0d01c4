package secure

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/shoal-mp/shoal/internal/link"
)

// Without encryption, the proof of the key is exchanged over plain TCP. It is bound only to this
// mode, so it cannot be relayed to a connection with TLS. A man in the middle can relay it to
// another unencrypted connection, and then read and modify the traffic.
var unencrypted = link.Bound([]byte("unencrypted"))

// opening is sent first by both sides, so that each detects immediately if the other uses TLS.
var opening = []byte("shoalU\x01\x00") // the last two bytes are the version, little-endian

// refusalTime limits the time that a listener waits for a caller with TLS to read the refusal.
const refusalTime = time.Second

// checkConflicts returns an error if the options contradict each other.
func (o Options) checkConflicts() error {
	if o.Unencrypted && (o.TLS != nil || o.Fingerprint != [sha256.Size]byte{}) {
		return errors.New("link: Unencrypted disables TLS: do not set TLS or Fingerprint with it")
	}
	return nil
}

// proveUnencrypted proves the key to a listener without TLS. The error wraps link.ErrPeer if the
// listener requires encryption. Otherwise it is an error of the network or of link.Client.
func proveUnencrypted(c net.Conn, key []byte) error {
	if _, err := c.Write(opening); err != nil {
		return err
	}
	said := make([]byte, len(opening))
	_, err := io.ReadFull(c, said)
	if err == nil && !bytes.Equal(said, opening) {
		err = fmt.Errorf("its first bytes are %q", said)
	}
	if err != nil {
		return fmt.Errorf("%w: it requires encryption, and this side has Unencrypted: "+
			"set it on both sides or on neither: %w", link.ErrPeer, err)
	}
	return link.Client(c, key, unencrypted)
}

// verifyUnencrypted is the listener's side of proveUnencrypted. The error wraps link.ErrPeer if the
// client uses TLS. Otherwise it is an error of the network or of link.Server.
func verifyUnencrypted(c net.Conn, key []byte) error {
	if _, err := c.Write(opening); err != nil {
		return err
	}
	said := make([]byte, len(opening))
	if _, err := io.ReadFull(c, said); err != nil {
		return err
	}
	if bytes.Equal(said, opening) {
		return link.Server(c, key, unencrypted)
	}
	// Drain the caller's bytes: closing a socket with unread data resets the connection, and the
	// caller might not be able to read the opening.
	c.SetDeadline(time.Now().Add(refusalTime))
	io.Copy(io.Discard, io.LimitReader(c, 64<<10))
	return link.ErrPeer
}

// isUnencryptedError reports whether err is the TLS error for a [Listener] with
// Options.Unencrypted. Such an error also satisfies isNotTLS, which is true for any peer without
// TLS.
func isUnencryptedError(err error) bool {
	var header tls.RecordHeaderError
	return errors.As(err, &header) && bytes.HasPrefix(opening, header.RecordHeader[:])
}
