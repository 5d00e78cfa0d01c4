package secure

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
)

// A Listener accepts connections from processes that know the key. Its methods may be called
// from several goroutines.
type Listener struct {
	key  []byte
	met  func(*Conn)
	tcp  net.Listener
	tls  *tls.Config // nil without encryption
	cert [sha256.Size]byte

	ctx       context.Context
	end       context.CancelFunc
	done      sync.WaitGroup
	strangers *sys.Strangers
}

// Listen calls met for each connection that has proven the key, each on a new goroutine. met must
// close the connection. The caller must close the listener. It returns link.ErrKey if the key is
// empty.
func Listen(addr string, opts Options, met func(*Conn)) (*Listener, error) {
	if len(opts.Key) == 0 {
		return nil, fmt.Errorf("listen: %w: key is empty", link.ErrKey)
	}
	l := &Listener{key: opts.Key, met: met, strangers: sys.NewStrangers(sys.MostStrangers)}
	err := opts.checkConflicts()
	if err == nil && !opts.Unencrypted {
		l.tls, err = ServerConfig(opts.TLS)
	}
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	l.cert = FingerprintOf(l.tls)
	if l.tcp, err = net.Listen("tcp", addr); err != nil {
		return nil, err
	}
	l.ctx, l.end = context.WithCancel(context.Background())
	l.done.Go(func() { sys.Accept(l.acceptConn, l.startHandshake) })
	return l, nil
}

// NetAddr returns the address of the listener, with the actual port instead of ":0".
func (l *Listener) NetAddr() net.Addr { return l.tcp.Addr() }

// Addr returns [Listener.NetAddr] as a string.
func (l *Listener) Addr() string { return l.tcp.Addr().String() }

// Fingerprint returns the SHA-256 of the certificate, as [FingerprintOf] does. It is zero if a
// function of [Options].TLS selects the certificate, or if the listener is unencrypted.
func (l *Listener) Fingerprint() [sha256.Size]byte { return l.cert }

// Close closes the listener and waits until all calls of met have returned. It does not close their
// connections, so the caller must make met return.
func (l *Listener) Close() error {
	l.end()
	err := l.tcp.Close()
	l.done.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (l *Listener) acceptConn() (net.Conn, error) {
	c, err := l.tcp.Accept()
	if errors.Is(err, net.ErrClosed) {
		err = os.ErrClosed
	}
	return c, err
}

func (l *Listener) startHandshake(c net.Conn) {
	host, _, _ := net.SplitHostPort(c.RemoteAddr().String())
	l.strangers.Enter(c, host)
	l.done.Go(func() {
		stop := context.AfterFunc(l.ctx, func() { c.Close() })
		s, err := l.verifyClient(c)
		l.strangers.Leave(c)
		if !stop() || err != nil {
			c.Close()
			return // a client with the key knows the cause
		}
		l.met(&Conn{s})
	})
}

// verifyClient returns the stream over c after the client has proven the key, which it must do
// within [handshakeTime]. After an error the caller must close c.
func (l *Listener) verifyClient(c net.Conn) (net.Conn, error) {
	c.SetDeadline(time.Now().Add(handshakeTime))
	if l.tls == nil {
		if err := verifyUnencrypted(c, l.key); err != nil {
			return nil, err
		}
		return c, c.SetDeadline(time.Time{})
	}
	s := tls.Server(c, l.tls)
	if err := s.HandshakeContext(l.ctx); err != nil {
		return nil, err
	}
	b, err := exportBinding(s)
	if err != nil {
		return nil, err
	}
	if err := link.Server(s, l.key, link.Bound(b)); err != nil {
		return nil, err
	}
	return s, c.SetDeadline(time.Time{})
}
