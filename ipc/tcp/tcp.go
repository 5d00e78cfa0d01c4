package tcp

import (
	"context"
	"crypto/sha256"
	"crypto/tls"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/link"
	"github.com/shoal-mp/shoal/internal/link/secure"
)

// Errors of ipc.Dial with Options. Test for them with errors.Is.
var (
	// ErrCertificate is returned when one side refuses the certificate of the other by Options.TLS,
	// or the listener asks for one and there is none.
	ErrCertificate = secure.ErrCertificate
	// ErrFingerprint is returned when the certificate does not have Options.Fingerprint. It wraps
	// ErrCertificate.
	ErrFingerprint = secure.ErrFingerprint
)

// errors.Is finds them in the starter of the worker that returns them.
func init() {
	codec.RegisterError("tcp.ErrCertificate", ErrCertificate)
	codec.RegisterError("tcp.ErrFingerprint", ErrFingerprint)
}

// Options are what ipc.Listen and ipc.Dial may be told, beside the key, of a connection to another
// machine. Of connections on one machine they change nothing.
type Options struct {
	// TLS configures the connection. ipc.Listen has the Certificates in it, and asks callers for
	// one by ClientAuth. Without any, and if TLS is nil, it makes a new self-signed certificate.
	// ipc.Dial checks the listener's by RootCAs and ServerName, or else by the host in the address;
	// if TLS is nil, by Fingerprint and the key alone. A MinVersion below TLS 1.3 is raised to TLS
	// 1.3.
	TLS *tls.Config
	// Fingerprint is the SHA-256 of the listener's certificate: sha256.Sum256(c.Certificate[0]) of
	// a tls.Certificate c. ipc.Dial checks it if it is not zero.
	Fingerprint [sha256.Size]byte
	// Unencrypted leaves TLS out, on both sides. They still prove that they know the key. But a
	// machine between them can read and change what follows, so it is for networks that only
	// trusted machines are on. It is an error together with TLS or Fingerprint.
	Unencrypted bool
}

// MeetingOption marks Options as something that ipc.Listen and ipc.Dial may be told.
func (Options) MeetingOption() {}

// among returns the last Options that a meeting was told, with its key.
func among(opts []link.Option, key []byte) secure.Options {
	s := secure.Options{Key: key}
	for _, o := range opts {
		if o, ok := o.(Options); ok {
			s.TLS, s.Fingerprint, s.Unencrypted = o.TLS, o.Fingerprint, o.Unencrypted
		}
	}
	return s
}

func init() {
	link.AddTransport("tcp", link.Transport{Listen: listen, Dial: dial})
}

func listen(addr string, key []byte, opts []link.Option, met func(link.Stream)) (link.Listener, error) {
	l, err := secure.Listen(addr, among(opts, key), func(c *secure.Conn) { met(c) })
	if err != nil {
		return nil, err
	}
	return l, nil
}

func dial(ctx context.Context, addr string, key []byte, opts []link.Option) (link.Stream, error) {
	c, err := secure.Dial(ctx, addr, among(opts, key))
	if err != nil {
		return nil, err
	}
	return c, nil
}
