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

// Without encryption the proof of the key is said on TCP itself. It is bound to nothing but its
// kind: nobody can pass it on to a connection with TLS. A process on the way can pass it on to
// another one without, and then read and change what follows.
var unencrypted = link.Bound([]byte("unencrypted"))

// opening is what both sides say first, so that each finds out at once if the other has TLS.
var opening = []byte("shoalU\x01\x00") // the last two are the version, little-endian

// refusalTime is how long a listener waits for a caller with TLS to take its refusal.
const refusalTime = time.Second

// fit returns an error if options contradict each other.
func (o Options) fit() error {
	if o.Unencrypted && (o.TLS != nil || o.Fingerprint != [sha256.Size]byte{}) {
		return errors.New("link: Unencrypted leaves out TLS, and with it the certificates that TLS and Fingerprint are for")
	}
	return nil
}

// callUnencrypted proves the key to a listener without TLS.
func callUnencrypted(c net.Conn, key []byte) error {
	if _, err := c.Write(opening); err != nil {
		return err
	}
	said := make([]byte, len(opening))
	_, err := io.ReadFull(c, said)
	if err == nil && !bytes.Equal(said, opening) {
		err = fmt.Errorf("it begins with %q", said)
	}
	if err != nil {
		return fmt.Errorf("%w: it does not listen without encryption, and this side has Unencrypted: "+
			"it is set on both sides or on none: %w", link.ErrPeer, err)
	}
	return link.Client(c, key, unencrypted)
}

// answerUnencrypted is the other side of callUnencrypted.
func answerUnencrypted(c net.Conn, key []byte) error {
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
	// Bytes that nobody has read would end the connection before the caller has read the opening.
	c.SetDeadline(time.Now().Add(refusalTime))
	io.Copy(io.Discard, io.LimitReader(c, 64<<10))
	return link.ErrPeer
}

// ofUnencrypted reports whether an error of TLS is that the other side has none.
func ofUnencrypted(err error) bool {
	var header tls.RecordHeaderError
	return errors.As(err, &header) && bytes.HasPrefix(opening, header.RecordHeader[:])
}
