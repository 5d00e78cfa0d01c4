package remote

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"net"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/link"
	"github.com/shoal-mp/shoal/internal/link/secure"
	"github.com/shoal-mp/shoal/manager"
)

// Errors of connecting to a manager. Test for them with errors.Is.
var (
	// ErrKey is returned if the two sides have different keys, or if there is a man in the middle.
	ErrKey = link.ErrKey
	// ErrPeer is returned if the other side is not a manager, or has another version of the
	// protocol.
	ErrPeer = link.ErrPeer
	// ErrCertificate is returned by Dial if one side rejects the certificate of the other according
	// to Options.TLS, or if the listener requires a certificate and the client has none.
	ErrCertificate = secure.ErrCertificate
	// ErrFingerprint is returned by Dial if the listener's certificate does not match
	// Options.Fingerprint. It wraps [ErrCertificate].
	ErrFingerprint = secure.ErrFingerprint
)

// The errors are registered so that errors.Is works for them in the parent of a worker that returns
// them.
func init() {
	codec.RegisterError("remote.ErrCertificate", ErrCertificate)
	codec.RegisterError("remote.ErrFingerprint", ErrFingerprint)
}

// Options configure [Listen] and [Dial].
type Options struct {
	// Key is the secret that both sides know. It must not be empty.
	Key []byte
	// TLS configures the connection. Listen uses its Certificates and, if ClientAuth is set,
	// requests certificates from clients. If TLS is nil or has no certificate, Listen generates a
	// self-signed one. Dial verifies the listener's certificate with RootCAs and ServerName, which
	// defaults to the host in the address. If TLS is nil, it verifies Fingerprint and Key only. A
	// MinVersion below TLS 1.3 is raised to TLS 1.3.
	TLS *tls.Config
	// Fingerprint is the SHA-256 of the listener's certificate. If it is not zero, Dial verifies
	// it.
	Fingerprint [sha256.Size]byte
}

// secureOptions returns o as options of package secure, which always enables TLS.
func (o Options) secureOptions() secure.Options {
	return secure.Options{Key: o.Key, TLS: o.TLS, Fingerprint: o.Fingerprint}
}

// A Listener serves the clients of one manager on other machines until it is closed. [Listen]
// makes it. Its methods may be called from several goroutines.
type Listener struct {
	l   *secure.Listener
	ctx context.Context
	end context.CancelFunc
}

// Listen serves m in the background at a TCP address such as ":7000", or ":0" for a free port.
// The caller must close the listener, and must close m only after it. It returns [ErrKey] if
// opts.Key is empty, and otherwise the error of listening.
func Listen(m *manager.Manager, addr string, opts Options) (*Listener, error) {
	l := new(Listener)
	l.ctx, l.end = context.WithCancel(context.Background())
	var err error
	// Errors of a stream are ignored: the client sees the stream end.
	l.l, err = secure.Listen(addr, opts.secureOptions(), func(c *secure.Conn) { m.Serve(l.ctx, c) })
	if err != nil {
		l.end()
		return nil, fmt.Errorf("remote: %w", err)
	}
	return l, nil
}

// Addr returns the address of the listener, with the actual port instead of ":0".
func (l *Listener) Addr() net.Addr { return l.l.NetAddr() }

// Fingerprint returns the SHA-256 of the listener's certificate, for Options.Fingerprint of Dial.
// It is zero if Options.TLS selects among several certificates.
func (l *Listener) Fingerprint() [sha256.Size]byte { return l.l.Fingerprint() }

// Close closes the listener and all connections, and waits until no call is served any more. The
// manager handles this like the death of the clients. Close is idempotent.
func (l *Listener) Close() error {
	l.end()
	return l.l.Close()
}
