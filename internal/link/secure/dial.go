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

// Dial connects to the [Listener] at a TCP address, and proves the key, within ten seconds. The
// caller must close the connection. The error wraps link.ErrKey, link.ErrPeer, [ErrCertificate]
// or [ErrFingerprint], or is the cause of ctx or an error of the network.
func Dial(ctx context.Context, addr string, opts Options) (_ *Conn, err error) {
	if err := opts.checkConflicts(); err != nil {
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
		if err := proveUnencrypted(c, opts.Key); err != nil {
			return nil, err
		}
		return &Conn{c}, nil
	}
	s := tls.Client(c, clientConfig(opts, addr))
	if err := s.HandshakeContext(ctx); err != nil {
		switch {
		case isUnencryptedError(err):
			err = fmt.Errorf("%w: it listens without encryption, and this side uses TLS: set Unencrypted on both "+
				"sides or on neither",
				link.ErrPeer)
		case isNotTLS(err):
			err = fmt.Errorf("%w: %w", link.ErrPeer, err)
		case isCertificateError(err) && !errors.Is(err, ErrCertificate):
			err = fmt.Errorf("%w: %w", ErrCertificate, err)
		}
		return nil, err
	}
	b, err := exportBinding(s)
	if err != nil {
		return nil, err
	}
	if err := link.Client(s, opts.Key, link.Bound(b)); err != nil {
		// With TLS 1.3 a listener rejects a certificate after the handshake is complete on this
		// side.
		if alert, ok := errors.AsType[*net.OpError](err); ok && isCertificateError(alert) {
			err = fmt.Errorf("%w by the listener: %w", ErrCertificate, alert)
		}
		return nil, err
	}
	return &Conn{s}, nil
}

// isCertificateError reports whether err is about a certificate, rejected by this side or by the
// peer.
func isCertificateError(err error) bool {
	var ours *tls.CertificateVerificationError
	var alert *net.OpError
	return errors.Is(err, ErrCertificate) || errors.As(err, &ours) ||
		errors.As(err, &alert) && alert.Op == "remote error" && strings.Contains(alert.Error(), "certificate")
}

// isNotTLS reports whether the peer does not speak TLS at all.
func isNotTLS(err error) bool {
	var header tls.RecordHeaderError
	return errors.As(err, &header)
}

// clientConfig returns the configuration for a connection to addr, with the verifications of opts.
func clientConfig(opts Options, addr string) *tls.Config {
	// InsecureSkipVerify is safe, because the key proves more than a certificate authority would: a
	// man in the middle has two connections with different secrets and cannot prove the key on
	// either.
	config := &tls.Config{InsecureSkipVerify: true}
	if opts.TLS != nil {
		config = opts.TLS.Clone()
	}
	if config.ServerName == "" { // like tls.Dial
		config.ServerName, _, _ = net.SplitHostPort(addr)
	}
	requireTLS13(config)
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
