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

// Errors of a connection that never served a call. Test for them with errors.Is.
var (
	// ErrKey is returned when the two sides have different keys, or an attacker is between them.
	ErrKey = link.ErrKey
	// ErrPeer is returned when the other side is not a manager, or has another version of the
	// protocol.
	ErrPeer = link.ErrPeer
	// ErrCertificate is returned by Dial when one side refuses the certificate of the other by
	// Options.TLS, or the listener asks for one and there is none.
	ErrCertificate = secure.ErrCertificate
	// ErrFingerprint is returned by Dial when the certificate does not have Options.Fingerprint. It
	// wraps ErrCertificate.
	ErrFingerprint = secure.ErrFingerprint
)

// errors.Is finds them in the starter of the worker that returns them.
func init() {
	codec.RegisterError("remote.ErrCertificate", ErrCertificate)
	codec.RegisterError("remote.ErrFingerprint", ErrFingerprint)
}

// Options configure Listen and Dial.
type Options struct {
	// Key is the secret that both sides know. It must not be empty.
	Key []byte
	// TLS configures the connection. Listen has the Certificates in it, and asks clients for one by
	// ClientAuth. Without any, and if TLS is nil, Listen makes a new self-signed certificate. Dial
	// checks the listener's by RootCAs and ServerName, or else by the host in the address; if TLS
	// is nil, by Fingerprint and Key alone. A MinVersion below TLS 1.3 is raised to TLS 1.3.
	TLS *tls.Config
	// Fingerprint is the SHA-256 of the listener's certificate. Dial checks it if it is not zero.
	Fingerprint [sha256.Size]byte
}

// secure returns the options of the connection, which always has TLS.
func (o Options) secure() secure.Options {
	return secure.Options{Key: o.Key, TLS: o.TLS, Fingerprint: o.Fingerprint}
}

// A Listener serves a manager until it is closed.
type Listener struct {
	l   *secure.Listener
	ctx context.Context
	end context.CancelFunc
}

// Listen serves m at a TCP address such as ":7000", or ":0" for a free port. The caller closes the
// listener, and closes m after it.
func Listen(m *manager.Manager, addr string, opts Options) (*Listener, error) {
	l := new(Listener)
	l.ctx, l.end = context.WithCancel(context.Background())
	var err error
	// What goes wrong with a stream is the client's matter, which sees it end.
	l.l, err = secure.Listen(addr, opts.secure(), func(c *secure.Conn) { m.Serve(l.ctx, c) })
	if err != nil {
		l.end()
		return nil, fmt.Errorf("remote: %w", err)
	}
	return l, nil
}

// Addr returns the address of the listener, with the port that ":0" found.
func (l *Listener) Addr() net.Addr { return l.l.NetAddr() }

// Fingerprint returns the SHA-256 of the listener's certificate, for Options.Fingerprint of Dial.
// It is zero if Options.TLS chooses among several certificates.
func (l *Listener) Fingerprint() [sha256.Size]byte { return l.l.Fingerprint() }

// Close ends the listener and every connection. The manager treats the clients as if they had died.
func (l *Listener) Close() error {
	l.end()
	return l.l.Close()
}
