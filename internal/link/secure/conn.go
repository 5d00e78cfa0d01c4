package secure

import (
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/shoal-mp/shoal/internal/link"
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
}

// MeetingOption implements link.Option. The Key of such Options is that of the meeting.
func (*Options) MeetingOption() {}

// among returns the Options that are among those of a meeting, with its key.
func among(opts []link.Option, key []byte) (o Options) {
	for _, opt := range opts {
		if given, ok := opt.(*Options); ok {
			o = *given
		}
	}
	o.Key = key
	return o
}

// handshakeTime is how long a connection has to prove the key.
const handshakeTime = 10 * time.Second

// A Conn is a stream whose two ends have proven the key.
type Conn struct{ *tls.Conn }

// Host returns the address of the other side.
func (c *Conn) Host() string { return c.RemoteAddr().String() }

// binding returns a secret that only the two ends of this connection know.
func binding(s *tls.Conn) ([]byte, error) {
	state := s.ConnectionState()
	return state.ExportKeyingMaterial("EXPORTER-shoal-manager", nil, 32)
}

func init() {
	link.AddTransport("tcp", link.Transport{
		Listen: func(addr string, key []byte, opts []link.Option, met func(link.Stream)) (link.Listener, error) {
			l, err := Listen(addr, among(opts, key), func(c *Conn) { met(c) })
			if err != nil {
				return nil, err
			}
			return l, nil
		},
		Dial: dialStream,
	})
}
