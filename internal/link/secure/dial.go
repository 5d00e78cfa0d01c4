package secure

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/shoal-mp/shoal/internal/link"
)

// Dialer returns a function that connects to the Listener at a TCP address. Its errors name the
// address.
func Dialer(opts Options) func(ctx context.Context, addr string) (*Conn, error) {
	config := clientConfig(opts)
	return func(ctx context.Context, addr string) (*Conn, error) {
		c, err := dial(ctx, addr, config, opts.Key)
		if err != nil {
			return nil, fmt.Errorf("dial %s: %w", addr, err)
		}
		return c, nil
	}
}

func dialStream(ctx context.Context, addr string, key []byte) (link.Stream, error) {
	c, err := dial(ctx, addr, clientConfig(Options{Key: key}), key)
	if err != nil {
		return nil, err
	}
	return c, nil
}

func dial(ctx context.Context, addr string, config *tls.Config, key []byte) (_ *Conn, err error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
	defer func() {
		if !stop() && err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	s := tls.Client(c, config)
	if err := s.HandshakeContext(ctx); err != nil {
		if notTLS(err) {
			return nil, fmt.Errorf("%w: %w", link.ErrPeer, err)
		}
		return nil, err
	}
	b, err := binding(s)
	if err != nil {
		return nil, err
	}
	return &Conn{s}, link.Client(s, key, link.Bound(b))
}

// notTLS reports whether the other side does not speak TLS at all.
func notTLS(err error) bool {
	var header tls.RecordHeaderError
	return errors.As(err, &header)
}

// clientConfig returns a configuration for Dial, with the checks of opts.
func clientConfig(opts Options) *tls.Config {
	// the key proves more than a certificate authority would: a process in the middle has two
	// connections with two secrets, and can prove the key on neither
	config := &tls.Config{InsecureSkipVerify: true}
	if opts.TLS != nil {
		config = opts.TLS.Clone()
	}
	harden(config)
	if opts.Fingerprint == [sha256.Size]byte{} {
		return config
	}
	inner := config.VerifyConnection
	config.VerifyConnection = func(s tls.ConnectionState) error {
		if len(s.PeerCertificates) == 0 || sha256.Sum256(s.PeerCertificates[0].Raw) != opts.Fingerprint {
			return ErrFingerprint
		}
		if inner != nil {
			return inner(s)
		}
		return nil
	}
	return config
}
