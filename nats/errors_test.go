package nats_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/shoal-mp/shoal/internal/link/secure"
	"github.com/shoal-mp/shoal/nats"
	"github.com/shoal-mp/shoal/nats/broker"
	"github.com/shoal-mp/shoal/test/testutil"
)

// refused wants Connect to fail with an error that names the host and says what to do.
func refused(t *testing.T, url string, o nats.Options, want error, says string) {
	t.Helper()
	c, err := nats.Connect(testutil.Context(t), url, o)
	if err == nil {
		c.Close()
	}
	testutil.ErrorIs(t, err, want)
	host, ok := err.(*nats.HostError)
	if !ok || host.Advice == "" {
		t.Fatalf("%T %v", err, err)
	}
	_, port, _ := net.SplitHostPort(host.Host)
	testutil.ErrorContains(t, err, "127.0.0.1:"+port, says)
}

func TestConnect_NobodyAnswers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testutil.NoError(t, err)
	free := "nats://" + l.Addr().String()
	testutil.NoError(t, l.Close())
	refused(t, free, nats.Options{}, nats.ErrUnreachable, "check that the broker runs")

	silent, err := net.Listen("tcp", "127.0.0.1:0")
	testutil.NoError(t, err)
	defer silent.Close()
	refused(t, "nats://secret:word@"+silent.Addr().String(), nats.Options{Timeout: 50 * time.Millisecond},
		nats.ErrUnreachable, "check that the broker runs")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = nats.Connect(ctx, "nats://secret:word@"+silent.Addr().String(), nats.Options{})
	testutil.ErrorIs(t, err, nats.ErrUnreachable)
}

func TestConnect_Credentials(t *testing.T) {
	user := start(t, broker.Options{User: "u", Password: "right"}).URL()
	refused(t, user, nats.Options{User: "u", Password: "wrong"}, nats.ErrCredentials, "user and password")
	refused(t, user, nats.Options{}, nats.ErrCredentials, "user and password")
	accepted(t, user, nats.Options{User: "u", Password: "right"})

	token := start(t, broker.Options{Token: "right"}).URL()
	refused(t, token, nats.Options{Token: "wrong"}, nats.ErrCredentials, "token")
	accepted(t, token, nats.Options{Token: "right"})

	right, wrong := nkeyFile(t), nkeyFile(t)
	key := start(t, broker.Options{NKeys: []string{right.public}}).URL()
	refused(t, key, nats.Options{NKeyFile: wrong.file}, nats.ErrCredentials, "NKey")
	refused(t, key, nats.Options{NKeyFile: filepath.Join(t.TempDir(), "none")}, nats.ErrCredentials, "none")
	refused(t, key, nats.Options{CredsFile: filepath.Join(t.TempDir(), "none")}, nats.ErrCredentials, "none")
	accepted(t, key, nats.Options{NKeyFile: right.file})
}

func accepted(t *testing.T, url string, o nats.Options) {
	t.Helper()
	c, err := nats.Connect(testutil.Context(t), url, o)
	testutil.NoError(t, err)
	defer c.Close()
	q := open[int](t, c, "works", nats.QueueOptions{})
	testutil.NoError(t, q.Put(testutil.Context(t), 1))
	v, err := q.Get(testutil.Context(t))
	if v != 1 || err != nil {
		t.Errorf("%d, %v", v, err)
	}
}

type nkey struct{ public, file string }

func nkeyFile(t *testing.T) nkey {
	t.Helper()
	pair, err := nkeys.CreateUser()
	testutil.NoError(t, err)
	public, err := pair.PublicKey()
	testutil.NoError(t, err)
	seed, err := pair.Seed()
	testutil.NoError(t, err)
	file := filepath.Join(t.TempDir(), "seed")
	testutil.NoError(t, os.WriteFile(file, seed, 0o600))
	return nkey{public, file}
}

func TestConnect_TLS(t *testing.T) {
	cert, err := secure.SelfSigned()
	testutil.NoError(t, err)
	leaf, err := x509.ParseCertificate(cert.Certificate[0])
	testutil.NoError(t, err)
	authority := x509.NewCertPool()
	authority.AddCert(leaf)
	name := "localhost"
	if len(leaf.DNSNames) > 0 {
		name = leaf.DNSNames[0]
	}
	url := start(t, broker.Options{TLS: &tls.Config{Certificates: []tls.Certificate{cert}}}).URL()
	accepted(t, url, nats.Options{TLS: &tls.Config{RootCAs: authority, ServerName: name,
		InsecureSkipVerify: len(leaf.DNSNames) == 0}})
	refused(t, url, nats.Options{}, nats.ErrCredentials, "Options.TLS")
	refused(t, url, nats.Options{TLS: &tls.Config{RootCAs: x509.NewCertPool(), ServerName: name}},
		nats.ErrCredentials, "Options.TLS")

	plain := start(t, broker.Options{}).URL()
	refused(t, plain, nats.Options{TLS: &tls.Config{RootCAs: authority, ServerName: name}},
		nats.ErrCredentials, "nats://")

	both := start(t, broker.Options{TLS: &tls.Config{Certificates: []tls.Certificate{cert}, ClientCAs: authority,
		ClientAuth: tls.RequireAndVerifyClientCert}}).URL()
	refused(t, both, nats.Options{TLS: &tls.Config{RootCAs: authority, ServerName: name, InsecureSkipVerify: true}},
		nats.ErrCredentials, "a client certificate if the broker asks for one")
}

func TestConnect_ServersThatCannotKeepQueues(t *testing.T) {
	refused(t, start(t, broker.Options{NoJetStream: true}).URL(), nats.Options{}, nats.ErrBroker, "with JetStream")
	refused(t, start(t, broker.Options{MaxPayload: 32 << 10}).URL(), nats.Options{}, nats.ErrBroker, "max_payload")
}

// A broker without room says so, and what it had is there.
func TestQueue_TheBrokerHasNoRoom(t *testing.T) {
	ctx := testutil.Context(t)
	b := start(t, broker.Options{MaxStore: 1 << 20, MaxPayload: 64 << 10})
	c := connect(t, b.URL())
	_, err := nats.OpenQueue[int](ctx, c, "reserves", nats.QueueOptions{MaxBytes: 8 << 20})
	testutil.ErrorIs(t, err, nats.ErrStorage)
	testutil.ErrorContains(t, err, c.Host(), "free space")

	q := open[[]byte](t, c, "grows", nats.QueueOptions{})
	n := 0
	for ; n < 100; n++ {
		if err = q.Put(ctx, make([]byte, 40<<10)); err != nil {
			break
		}
	}
	testutil.ErrorIs(t, err, nats.ErrStorage)
	testutil.ErrorContains(t, err, c.Host(), "free space")
	testutil.ErrorIs(t, q.Put(ctx, make([]byte, 300<<10)), nats.ErrStorage)
	for range n {
		v, err := q.Get(ctx)
		testutil.NoError(t, err)
		if len(v) != 40<<10 {
			t.Errorf("%d bytes", len(v))
		}
	}
	if n == 0 {
		t.Error("it never had room")
	}
	testutil.NoError(t, q.Put(ctx, []byte{1}))

	small := open[[]byte](t, c, "small", nats.QueueOptions{MaxBytes: 10 << 10})
	testutil.ErrorIs(t, small.Put(ctx, make([]byte, 20<<10)), nats.ErrTooLarge)
}

// TestErrClosed_WrapsThatOfPackageOS is the test of test/archtest for packages of the main module.
func TestErrClosed_WrapsThatOfPackageOS(t *testing.T) {
	if !errors.Is(nats.ErrClosed, os.ErrClosed) || strings.Contains(nats.ErrClosed.Error(), os.ErrClosed.Error()) {
		t.Errorf("%q does not wrap os.ErrClosed, or repeats its text", nats.ErrClosed)
	}
}

// Just after the start of a cluster, its leader does not know all brokers. A request that needs
// them waits for them to join, and then the error says that the brokers are too few. It does not
// wait if the brokers are there and have no space.
func TestConn_WaitsForBrokersToJoin(t *testing.T) {
	const timeout = 50 * time.Millisecond
	ctx := testutil.Context(t)
	c, err := nats.Connect(ctx, start(t, broker.Options{}).URL(), nats.Options{Timeout: timeout})
	testutil.NoError(t, err)
	t.Cleanup(func() { testutil.NoError(t, c.Close()) })
	for _, tt := range []struct {
		reason string
		waits  time.Duration
	}{
		{"", timeout},
		{", peer offline", 4 * timeout},
		{", miscellaneous issue", 4 * timeout},
		{", insufficient storage", 0},
	} {
		missing := &jetstream.APIError{Code: 400, ErrorCode: 10005,
			Description: "no suitable peers for placement" + tt.reason}
		if tt.waits > 0 {
			calls := 0
			err := c.Ask(ctx, func() error {
				if calls++; calls == 1 {
					return missing
				}
				return nil
			})
			if err != nil || calls != 2 {
				t.Errorf("%v: %d calls, error %v, want 2 and none", missing, calls, err)
			}
		}
		began, calls := time.Now(), 0
		err := c.Ask(ctx, func() error { calls++; return missing })
		took := time.Since(began)
		testutil.ErrorIs(t, err, nats.ErrBroker)
		if errors.Is(err, nats.ErrUnreachable) || took < tt.waits {
			t.Errorf("%v after %v, want an error of the brokers after %v", err, took, tt.waits)
		}
		if tt.waits == 0 && calls != 1 {
			t.Errorf("%v: %d calls, want 1", missing, calls)
		}
	}
}

// A broker may be closed again, as a deferred call after an earlier one does.
func TestBroker_ClosesTwice(t *testing.T) {
	b := start(t, broker.Options{}) // its cleanup closes it once more
	testutil.NoError(t, b.Close(), b.Close())
}
