package secure

import (
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"
)

var (
	// ErrCertificate is returned by Dial when one side refuses the certificate of the other, or has
	// none to show.
	ErrCertificate = errors.New("link: certificate refused")
	// ErrFingerprint is returned by Dial when the certificate does not have Options.Fingerprint.
	ErrFingerprint = fmt.Errorf("link: certificate of another fingerprint%.0w", ErrCertificate)
)

// Options configure Listen and Dial.
type Options struct {
	// Key is the secret that both sides know. It is not empty.
	Key []byte
	// TLS configures the connection, unless it is nil.
	TLS *tls.Config
	// Fingerprint is the SHA-256 of the listener's certificate. Dial checks it if it is not zero.
	Fingerprint [sha256.Size]byte
	// Unencrypted leaves TLS out, on both sides, see unencrypted.go.
	Unencrypted bool
}

// handshakeTime is how long a connection has to prove the key.
const handshakeTime = 10 * time.Second

// A Conn is a stream whose two ends have proven the key: a *tls.Conn, or without encryption a
// *net.TCPConn.
type Conn struct{ net.Conn }

// Host returns the address of the other side.
func (c *Conn) Host() string { return c.RemoteAddr().String() }

// NetConn returns the connection below TLS.
func (c *Conn) NetConn() net.Conn {
	if s, ok := c.Conn.(*tls.Conn); ok {
		return s.NetConn()
	}
	return c.Conn
}

// binding returns a secret that only the two ends of this connection know.
func binding(s *tls.Conn) ([]byte, error) {
	state := s.ConnectionState()
	return state.ExportKeyingMaterial("EXPORTER-shoal-manager", nil, 32)
}
