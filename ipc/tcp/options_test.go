package tcp_test

import (
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/shoal-mp/shoal/internal/link/secure/securetest"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/ipc/tcp"
	"github.com/shoal-mp/shoal/test/testutil"
)

// Certificates of an authority on both sides, or one that the other side knows by its fingerprint.
// What does not fit is an error of a type at the caller's, and the listener goes on.
func TestOptions_Certificates(t *testing.T) {
	ours, others := securetest.New(t), securetest.New(t)
	config := func(certs ...tls.Certificate) *tls.Config {
		return &tls.Config{Certificates: certs, RootCAs: ours.Pool()}
	}
	host, caller := ours.Certificate(t, "host.example"), ours.Certificate(t, "caller.example")
	asks := config(host)
	asks.ClientAuth, asks.ClientCAs = tls.RequireAndVerifyClientCert, ours.Pool()
	named := config()
	named.ServerName = "host.example"
	misnamed := config()
	misnamed.ServerName = "another.example"
	for name, c := range map[string]struct {
		listen, dial tcp.Options
		key          []byte
		err          error
		text         string
	}{
		"by its address": {listen: tcp.Options{TLS: config(host)}, dial: tcp.Options{TLS: config()}},
		"by its name":    {listen: tcp.Options{TLS: config(host)}, dial: tcp.Options{TLS: named}},
		"by its fingerprint": {listen: tcp.Options{TLS: config(host)},
			dial: tcp.Options{Fingerprint: sha256.Sum256(host.Certificate[0])}},
		"by the key alone": {listen: tcp.Options{TLS: config(host)}},
		"both sides":       {listen: tcp.Options{TLS: asks}, dial: tcp.Options{TLS: config(caller)}},
		"another name": {listen: tcp.Options{TLS: config(host)}, dial: tcp.Options{TLS: misnamed},
			err: tcp.ErrCertificate, text: "another.example"},
		"expired": {listen: tcp.Options{TLS: config(ours.Expired(t, "host.example"))}, dial: tcp.Options{TLS: config()},
			err: tcp.ErrCertificate, text: "expired"},
		"another authority": {listen: tcp.Options{TLS: config(others.Certificate(t, "host.example"))},
			dial: tcp.Options{TLS: config()}, err: tcp.ErrCertificate, text: "authority"},
		"one that signs itself": {dial: tcp.Options{TLS: config()}, err: tcp.ErrCertificate, text: "certificate"},
		"another fingerprint": {listen: tcp.Options{TLS: config(host)},
			dial: tcp.Options{Fingerprint: sha256.Sum256(caller.Certificate[0])}, err: tcp.ErrFingerprint,
			text: "fingerprint"},
		"none of the caller": {listen: tcp.Options{TLS: asks}, dial: tcp.Options{TLS: config()},
			err: tcp.ErrCertificate, text: "by the listener"},
		"no TLS of the caller": {listen: tcp.Options{TLS: asks}, err: tcp.ErrCertificate, text: "by the listener"},
		"another of the caller": {listen: tcp.Options{TLS: asks},
			dial: tcp.Options{TLS: config(others.Certificate(t, "caller.example"))}, err: tcp.ErrCertificate,
			text: "certificate"},
		"another key": {listen: tcp.Options{TLS: asks}, dial: tcp.Options{TLS: config(caller)},
			key: []byte("another key"), err: ipc.ErrKey},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := testutil.Context(t)
			l, err := ipc.ListenWith[int]("tcp://127.0.0.1:0", key, ipc.MeetingOptions{Transport: c.listen})
			testutil.NoError(t, err)
			defer l.Close()
			if c.key == nil {
				c.key = key
			}
			conn, err := ipc.DialWith[int](ctx, l.Addr(), c.key, ipc.MeetingOptions{Transport: c.dial})
			if c.err != nil {
				if err == nil {
					conn.Close()
				}
				if !errors.Is(err, c.err) || errors.Is(err, ipc.ErrPeer) || !strings.Contains(err.Error(), c.text) ||
					!strings.Contains(err.Error(), l.Addr()) {
					t.Fatalf("%v", err)
				}
				// Somebody who has what the listener wants is served all the same.
				good := tcp.Options{}
				if c.listen.TLS == asks {
					good.TLS = config(caller)
				}
				if conn, err = ipc.DialWith[int](ctx, l.Addr(), key, ipc.MeetingOptions{Transport: good}); err != nil {
					t.Fatalf("after that: %v", err)
				}
			}
			testutil.NoError(t, err)
			defer conn.Close()
			testutil.NoError(t, conn.Send(ctx, 7))
			theirs, err := l.Accept(ctx)
			testutil.NoError(t, err)
			defer theirs.Close()
			if got, err := theirs.Recv(ctx); got != 7 || err != nil {
				t.Errorf("received %d, %v", got, err)
			}
		})
	}
}

// A configuration that is chosen for a client may be older than ours: TLS 1.3 it is all the same.
func TestOptions_ChosenConfigurationIsOfThisVersion(t *testing.T) {
	authority := securetest.New(t)
	cert := authority.Certificate(t, "host.example")
	chooses := &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}, nil
	}}
	l, err := ipc.ListenWith[int]("tcp://127.0.0.1:0", key, ipc.MeetingOptions{
		Transport: tcp.Options{TLS: chooses}})
	testutil.NoError(t, err)
	defer l.Close()
	old := &tls.Config{RootCAs: authority.Pool(), ServerName: "host.example", MaxVersion: tls.VersionTLS12}
	if c, err := tls.Dial("tcp", strings.TrimPrefix(l.Addr(), "tcp://"), old); err == nil {
		c.Close()
		t.Error("a client of TLS 1.2 is let in")
	}
	now := &tls.Config{RootCAs: authority.Pool(), ServerName: "host.example"}
	conn, err := ipc.DialWith[int](testutil.Context(t), l.Addr(), key, ipc.MeetingOptions{
		Transport: tcp.Options{TLS: now}})
	testutil.NoError(t, err)
	testutil.NoError(t, conn.Close())
}

// foreignOptions are options of a transport that does not exist.
type foreignOptions struct{}

func (foreignOptions) TransportOptions() {}

// Options that this transport would ignore may be those that were meant to verify the other side.
func TestOptions_OfAnotherTypeAreRefused(t *testing.T) {
	l := listenStream[int](t)
	for _, other := range []ipc.TransportOptions{foreignOptions{}, new(tcp.Options)} {
		opts := ipc.MeetingOptions{Transport: other}
		_, err := ipc.ListenWith[int]("tcp://127.0.0.1:0", key, opts)
		testutil.ErrorIs(t, err, syscall.EINVAL)
		_, err = ipc.DialWith[int](testutil.Context(t), l.Addr(), key, opts)
		testutil.ErrorIs(t, err, syscall.EINVAL)
		if err != nil && !strings.Contains(err.Error(), "want tcp.Options") {
			t.Errorf("the error does not name the wanted type: %v", err)
		}
	}
}
