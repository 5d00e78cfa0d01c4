package secure

import (
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/shoal-mp/shoal/internal/sentinel"
)

var (
	// ErrCertificate is returned by Dial if one side rejects the certificate of the other, or has
	// none.
	ErrCertificate = errors.New("link: certificate rejected")
	// ErrFingerprint is returned by Dial if the certificate does not match Options.Fingerprint.
	ErrFingerprint = sentinel.New("link: certificate has another fingerprint", ErrCertificate)
)

// Options configure [Listen] and [Dial].
type Options struct {
	// Key is the secret that both sides know. It must not be empty.
	Key []byte
	// TLS configures the connection. It may be nil.
	TLS *tls.Config
	// Fingerprint is the SHA-256 of the listener's certificate. If it is not zero, Dial verifies
	// it.
	Fingerprint [sha256.Size]byte
	// Unencrypted disables TLS. It must be set on both sides. See unencrypted.go.
	Unencrypted bool
}

// handshakeTime limits the time until a connection has proven the key.
const handshakeTime = 10 * time.Second

// A Conn is a stream after the proof of the key: a *tls.Conn, or a *net.TCPConn without encryption.
type Conn struct{ net.Conn }

// Host returns the address of the peer.
func (c *Conn) Host() string { return c.RemoteAddr().String() }

// NetConn returns the connection below TLS.
func (c *Conn) NetConn() net.Conn {
	if s, ok := c.Conn.(*tls.Conn); ok {
		return s.NetConn()
	}
	return c.Conn
}

// exportBinding returns a secret that only the two ends of this connection know.
func exportBinding(s *tls.Conn) ([]byte, error) {
	state := s.ConnectionState()
	return state.ExportKeyingMaterial("EXPORTER-shoal-manager", nil, 32)
}
