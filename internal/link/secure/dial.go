package secure

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/shoal-mp/shoal/internal/link"
)

// Dial connects to the Listener at a TCP address. The error wraps link.ErrKey, link.ErrPeer,
// ErrCertificate or ErrFingerprint, or is that of the network.
func Dial(ctx context.Context, addr string, opts Options) (_ *Conn, err error) {
	if err := opts.fit(); err != nil {
		return nil, err
	}
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
	if opts.Unencrypted {
		if err := callUnencrypted(c, opts.Key); err != nil {
			return nil, err
		}
		return &Conn{c}, nil
	}
	s := tls.Client(c, clientConfig(opts, addr))
	if err := s.HandshakeContext(ctx); err != nil {
		switch {
		case ofUnencrypted(err):
			err = fmt.Errorf("%w: it listens without encryption, and this side has TLS: Unencrypted is set on both sides or on none",
				link.ErrPeer)
		case notTLS(err):
			err = fmt.Errorf("%w: %w", link.ErrPeer, err)
		case ofCertificate(err) && !errors.Is(err, ErrCertificate):
			err = fmt.Errorf("%w: %w", ErrCertificate, err)
		}
		return nil, err
	}
	b, err := binding(s)
	if err != nil {
		return nil, err
	}
	if err := link.Client(s, opts.Key, link.Bound(b)); err != nil {
		// With TLS 1.3 a listener refuses a certificate when the handshake is over for this side.
		if alert, ok := errors.AsType[*net.OpError](err); ok && ofCertificate(alert) {
			err = fmt.Errorf("%w by the listener: %w", ErrCertificate, alert)
		}
		return nil, err
	}
	return &Conn{s}, nil
}

// ofCertificate reports whether an error is that of a certificate, of this side or of the other.
func ofCertificate(err error) bool {
	var ours *tls.CertificateVerificationError
	var alert *net.OpError
	return errors.Is(err, ErrCertificate) || errors.As(err, &ours) ||
		errors.As(err, &alert) && alert.Op == "remote error" && strings.Contains(alert.Error(), "certificate")
}

// notTLS reports whether the other side does not speak TLS at all.
func notTLS(err error) bool {
	var header tls.RecordHeaderError
	return errors.As(err, &header)
}

// clientConfig returns a configuration for Dial to an address, with the checks of opts.
func clientConfig(opts Options, addr string) *tls.Config {
	// the key proves more than a certificate authority would: a process in the middle has two
	// connections with two secrets, and can prove the key on neither
	config := &tls.Config{InsecureSkipVerify: true}
	if opts.TLS != nil {
		config = opts.TLS.Clone()
	}
	if config.ServerName == "" { // as tls.Dial does
		config.ServerName, _, _ = net.SplitHostPort(addr)
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
