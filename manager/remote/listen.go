package remote

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/shoal-mp/shoal/internal/link"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/manager"
)

// Errors of a connection that never served a call. Test for them with errors.Is.
var (
	// ErrKey is returned when the two sides have different keys, or an attacker is between them.
	ErrKey = link.ErrKey
	// ErrPeer is returned when the other side is not a manager, or has another version of the
	// protocol.
	ErrPeer = link.ErrPeer
	// ErrFingerprint is returned by Dial when the certificate does not have Options.Fingerprint.
	ErrFingerprint = errors.New("remote: certificate of another fingerprint")
)

// Options configure Listen and Dial.
type Options struct {
	// Key is the secret that both sides know. It must not be empty.
	Key []byte
	// TLS configures the connection. If it is nil, Listen makes a new self-signed certificate, and
	// Dial checks the certificate by Fingerprint and Key alone. A MinVersion below TLS 1.3 is
	// raised to TLS 1.3.
	TLS *tls.Config
	// Fingerprint is the SHA-256 of the listener's certificate. Dial checks it if it is not zero.
	Fingerprint [sha256.Size]byte
}

// handshakeTime is how long a connection has to prove the key.
const handshakeTime = 10 * time.Second

// maxStrangers is how many connections may be busy proving it, see [sys.Strangers].
const maxStrangers = 64

// A Listener serves a manager until it is closed.
type Listener struct {
	m    *manager.Manager
	key  []byte
	tcp  net.Listener
	tls  *tls.Config
	cert [sha256.Size]byte

	ctx       context.Context
	end       context.CancelFunc
	done      sync.WaitGroup
	strangers *sys.Strangers
}

// Listen serves m at a TCP address such as ":7000", or ":0" for a free port. The caller closes the
// listener, and closes m after it.
func Listen(m *manager.Manager, addr string, opts Options) (*Listener, error) {
	if len(opts.Key) == 0 {
		return nil, fmt.Errorf("remote: listen: %w: it is empty", ErrKey)
	}
	l := &Listener{m: m, key: opts.Key, strangers: sys.NewStrangers(maxStrangers)}
	var err error
	if l.tls, err = serverConfig(opts.TLS); err != nil {
		return nil, fmt.Errorf("remote: listen: %w", err)
	}
	if len(l.tls.Certificates) > 0 {
		l.cert = sha256.Sum256(l.tls.Certificates[0].Certificate[0])
	}
	if l.tcp, err = net.Listen("tcp", addr); err != nil {
		return nil, fmt.Errorf("remote: %w", err)
	}
	l.ctx, l.end = context.WithCancel(context.Background())
	l.done.Go(func() { sys.Accept(l.accept, l.meet) })
	return l, nil
}

// Addr returns the address of the listener, with the port that ":0" found.
func (l *Listener) Addr() net.Addr { return l.tcp.Addr() }

// Fingerprint returns the SHA-256 of the listener's certificate, for Options.Fingerprint of Dial.
// It is zero if Options.TLS chooses among several certificates.
func (l *Listener) Fingerprint() [sha256.Size]byte { return l.cert }

// Close ends the listener and every connection. The manager treats the clients as if they had died.
func (l *Listener) Close() error {
	l.end()
	err := l.tcp.Close()
	l.done.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (l *Listener) accept() (net.Conn, error) {
	c, err := l.tcp.Accept()
	if errors.Is(err, net.ErrClosed) {
		err = os.ErrClosed
	}
	return c, err
}

func (l *Listener) meet(c net.Conn) {
	host, _, _ := net.SplitHostPort(c.RemoteAddr().String())
	l.strangers.Enter(c, host)
	l.done.Go(func() {
		defer context.AfterFunc(l.ctx, func() { c.Close() })()
		s, err := l.prove(c)
		l.strangers.Leave(c)
		if err != nil {
			c.Close()
			return // the client knows why, if it is one
		}
		l.m.Serve(l.ctx, s) // what goes wrong is the client's matter, which sees the stream end
	})
}

// prove returns the stream when the client has proven the key.
func (l *Listener) prove(c net.Conn) (*tls.Conn, error) {
	c.SetDeadline(time.Now().Add(handshakeTime))
	s := tls.Server(c, l.tls)
	if err := s.HandshakeContext(l.ctx); err != nil {
		return nil, err
	}
	b, err := binding(s)
	if err != nil {
		return nil, err
	}
	if err := link.Server(s, l.key, link.Bound(b)); err != nil {
		return nil, err
	}
	return s, c.SetDeadline(time.Time{})
}

// binding is a secret that only the two ends of this connection know.
func binding(s *tls.Conn) ([]byte, error) {
	state := s.ConnectionState()
	return state.ExportKeyingMaterial("EXPORTER-shoal-manager", nil, 32)
}
