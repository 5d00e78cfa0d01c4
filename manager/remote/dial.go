package remote

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/shoal-mp/shoal/internal/link"
	"github.com/shoal-mp/shoal/manager"
)

// Dial connects to the Listener at a TCP address. The error wraps ErrKey, ErrPeer or
// ErrFingerprint, or is that of the network. The caller closes the manager, which ends the
// connections and all proxies that this process has through it.
func Dial(ctx context.Context, addr string, opts Options) (*manager.Manager, error) {
	config := clientConfig(opts)
	m, err := manager.Connect(ctx, func(ctx context.Context) (manager.Stream, error) {
		s, err := dial(ctx, addr, config, opts.Key)
		if err != nil {
			return nil, fmt.Errorf("dial %s: %w", addr, err)
		}
		return s, nil
	})
	if err != nil {
		return nil, fmt.Errorf("remote: %w", err)
	}
	return m, nil
}

func dial(ctx context.Context, addr string, config *tls.Config, key []byte) (_ manager.Stream, err error) {
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
			return nil, fmt.Errorf("%w: %w", ErrPeer, err)
		}
		return nil, err
	}
	b, err := binding(s)
	if err != nil {
		return nil, err
	}
	return s, link.Client(s, key, link.Bound(b))
}

// notTLS reports whether what answers does not speak TLS at all.
func notTLS(err error) bool {
	var header tls.RecordHeaderError
	return errors.As(err, &header)
}

func clientConfig(opts Options) *tls.Config {
	// the key proves more than a certificate authority would, see the package's comment
	config := &tls.Config{InsecureSkipVerify: true}
	if opts.TLS != nil {
		config = opts.TLS.Clone()
	}
	config.MinVersion = max(config.MinVersion, tls.VersionTLS13)
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
