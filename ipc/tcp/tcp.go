package tcp

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"syscall"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/link"
	"github.com/shoal-mp/shoal/internal/link/secure"
)

// Errors of ipc.DialWith with Options. Test for them with errors.Is.
var (
	// ErrCertificate is returned if one side rejects the certificate of the other according to
	// Options.TLS, or if the listener requires a certificate and the caller has none.
	ErrCertificate = secure.ErrCertificate
	// ErrFingerprint is returned if the listener's certificate does not match Options.Fingerprint.
	// It wraps [ErrCertificate].
	ErrFingerprint = secure.ErrFingerprint
)

// The errors are registered so that errors.Is works for them in the parent of a worker that returns
// them.
func init() {
	codec.RegisterError("tcp.ErrCertificate", ErrCertificate)
	codec.RegisterError("tcp.ErrFingerprint", ErrFingerprint)
}

// Options configure connections to other machines, in addition to the key. They are the Transport
// of ipc.MeetingOptions, for ipc.ListenWith and ipc.DialWith.
type Options struct {
	// TLS configures the connection. A listener uses its Certificates and, if ClientAuth is set,
	// requests certificates from callers. If TLS is nil or has no certificate, it generates a
	// self-signed one. A caller verifies the listener's certificate with RootCAs and ServerName,
	// which defaults to the host in the address. If TLS is nil, it verifies the Fingerprint and the
	// key only. A MinVersion below TLS 1.3 is raised to TLS 1.3.
	TLS *tls.Config
	// Fingerprint is the SHA-256 of the listener's certificate: sha256.Sum256(c.Certificate[0]) of
	// a tls.Certificate c. If it is not zero, ipc.DialWith verifies it.
	Fingerprint [sha256.Size]byte
	// Unencrypted disables TLS. It must be set on both sides. They still prove the key to each
	// other, but a machine between them can read and modify the traffic, so it should be used only
	// in networks of trusted machines. It must not be combined with TLS or Fingerprint:
	// ipc.ListenWith and ipc.DialWith then return an error.
	Unencrypted bool
}

// TransportOptions implements ipc.TransportOptions.
func (Options) TransportOptions() {}

// secureOptions returns opts, which may be nil, together with the key.
func secureOptions(opts link.Options, key []byte) (secure.Options, error) {
	s := secure.Options{Key: key}
	switch o := opts.(type) {
	case nil:
	case Options:
		s.TLS, s.Fingerprint, s.Unencrypted = o.TLS, o.Fingerprint, o.Unencrypted
	default:
		return s, fmt.Errorf("%w: got Transport of type %T, want tcp.Options", syscall.EINVAL, opts)
	}
	return s, nil
}

func init() {
	link.AddTransport("tcp", link.Transport{Listen: listenStream, Dial: dialStream})
}

func listenStream(addr string, key []byte, opts link.Options, met func(link.Stream)) (link.Listener, error) {
	o, err := secureOptions(opts, key)
	if err != nil {
		return nil, err
	}
	l, err := secure.Listen(addr, o, func(c *secure.Conn) { met(c) })
	if err != nil {
		return nil, err
	}
	return l, nil
}

func dialStream(ctx context.Context, addr string, key []byte, opts link.Options) (link.Stream, error) {
	o, err := secureOptions(opts, key)
	if err != nil {
		return nil, err
	}
	c, err := secure.Dial(ctx, addr, o)
	if err != nil {
		return nil, err
	}
	return c, nil
}
