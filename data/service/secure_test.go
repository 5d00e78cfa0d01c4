package service_test

import (
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/data/service"
	"github.com/shoal-mp/shoal/internal/link/secure/securetest"
	"github.com/shoal-mp/shoal/ipc"
)

// TestDial_Certificates: certificates of an authority on both sides, as with manager/remote. What
// does not fit is an error of a type, which names the data host and says what to compare.
func TestDial_Certificates(t *testing.T) {
	ours, others := securetest.New(t), securetest.New(t)
	config := func(certs ...tls.Certificate) *tls.Config {
		return &tls.Config{Certificates: certs, RootCAs: ours.Pool()}
	}
	host, trainer := ours.Certificate(t, "data.example"), ours.Certificate(t, "trainer.example")
	asks := config(host)
	asks.ClientAuth, asks.ClientCAs = tls.RequireAndVerifyClientCert, ours.Pool()
	named := config()
	named.ServerName = "data.example"
	unchecked := config(trainer)
	unchecked.InsecureSkipVerify = true
	misnamed := config()
	misnamed.ServerName = "another.example"
	plain := listen(t, numbers{40, 0, -1}, service.HostOptions{TLS: config(host)}, nil)
	wants := listen(t, numbers{40, 0, -1}, service.HostOptions{TLS: asks}, nil)
	expired := listen(t, numbers{40, 0, -1}, service.HostOptions{TLS: config(ours.Expired(t, "data.example"))}, nil)
	foreign := listen(t, numbers{40, 0, -1}, service.HostOptions{TLS: config(others.Certificate(t, "data.example"))},
		nil)
	own := listen(t, numbers{40, 0, -1}, service.HostOptions{}, nil)
	// It asks for a certificate and has none of its own: Listen makes one.
	half := listen(t, numbers{40, 0, -1},
		service.HostOptions{TLS: &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ours.Pool()}}, nil)
	for name, c := range map[string]struct {
		host *service.Host
		o    service.Options
		err  error
		text string
	}{
		"by its address":          {plain, service.Options{TLS: config()}, nil, ""},
		"by its name":             {plain, service.Options{TLS: named}, nil, ""},
		"by its fingerprint":      {plain, service.Options{Fingerprint: plain.Fingerprint()}, nil, ""},
		"its own, by fingerprint": {own, service.Options{Fingerprint: own.Fingerprint()}, nil, ""},
		"by the key alone":        {plain, service.Options{}, nil, ""},
		"both sides":              {wants, service.Options{TLS: config(trainer)}, nil, ""},
		"the trainer's, to none":  {half, service.Options{TLS: unchecked}, nil, ""},
		"another name":            {plain, service.Options{TLS: misnamed}, service.ErrCertificate, "another.example"},
		"expired":                 {expired, service.Options{TLS: config()}, service.ErrCertificate, "expired"},
		"another authority":       {foreign, service.Options{TLS: config()}, service.ErrCertificate, "RootCAs"},
		"one that signs itself":   {own, service.Options{TLS: config()}, service.ErrCertificate, "RootCAs"},
		"another fingerprint": {plain, service.Options{Fingerprint: own.Fingerprint()}, service.ErrCertificate,
			"Host.Fingerprint"},
		"none of the trainer":   {wants, service.Options{TLS: config()}, service.ErrCertificate, "ClientCAs"},
		"no TLS of the trainer": {wants, service.Options{}, service.ErrCertificate, "ClientCAs"},
		"another of the trainer": {wants, service.Options{TLS: config(others.Certificate(t, "trainer.example"))},
			service.ErrCertificate, "certificate"},
		"an expired one of the trainer": {wants, service.Options{TLS: config(ours.Expired(t, "trainer.example"))},
			service.ErrCertificate, "certificate"},
		"another key": {wants, service.Options{TLS: config(trainer), Key: []byte("another key")}, ipc.ErrKey,
			"the same key"},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.Patience = patience
			if c.o.Key == nil {
				c.o.Key = key
			}
			l, err := service.Dial(t.Context(), c.o, c.host.Addr())
			if c.err == nil {
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				once(t, 40, epoch(t, l.Batches(t.Context()), nil))
				return
			}
			if err == nil {
				l.Close()
			}
			var at *service.HostError
			if !errors.Is(err, c.err) || !errors.As(err, &at) || at.Host != c.host.Addr() || at.Advice == "" ||
				!strings.Contains(err.Error(), c.text) || errors.Is(err, ipc.ErrPeer) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestUnencrypted: both sides leave out TLS, or neither, and options of TLS are not for it.
func TestUnencrypted(t *testing.T) {
	bare := listen(t, numbers{40, 0, -1}, service.HostOptions{Unencrypted: true}, nil)
	once(t, 40, epoch(t, dial(t, service.Options{Unencrypted: true}, bare.Addr()).Batches(t.Context()), nil))
	if bare.Fingerprint() != [sha256.Size]byte{} {
		t.Error("a host without TLS has a certificate")
	}
	encrypted := listen(t, numbers{40, 0, -1}, service.HostOptions{}, nil)
	for _, c := range []struct {
		host *service.Host
		o    service.Options
		err  error
	}{
		{bare, service.Options{Key: key}, ipc.ErrPeer},
		{encrypted, service.Options{Key: key, Unencrypted: true}, ipc.ErrPeer},
		{bare, service.Options{Key: []byte("another key"), Unencrypted: true}, ipc.ErrKey},
		{bare, service.Options{Key: key, Unencrypted: true, TLS: new(tls.Config)}, service.ErrOptions},
		{bare, service.Options{Key: key, Unencrypted: true, Fingerprint: encrypted.Fingerprint()}, service.ErrOptions},
	} {
		if _, err := service.Dial(t.Context(), c.o, c.host.Addr()); !errors.Is(err, c.err) ||
			errors.Is(err, ipc.ErrPeer) && !strings.Contains(err.Error(), "Unencrypted") {
			t.Errorf("%+v: %v", c.o, err)
		}
	}
	l := loader(numbers{40, 0, -1}, nil)
	defer l.Close()
	if _, err := service.Listen(l, "127.0.0.1:0", service.HostOptions{Key: key, Unencrypted: true,
		TLS: new(tls.Config)}); !errors.Is(err, service.ErrOptions) {
		t.Errorf("%v", err)
	}
}

// TestDial_CertificateThatIsReplaced: a data host that comes back with another certificate is left
// out, and its batches come from the others.
func TestDial_CertificateThatIsReplaced(t *testing.T) {
	ours, others := securetest.New(t), securetest.New(t)
	of := func(a *securetest.Authority) service.HostOptions {
		return service.HostOptions{TLS: &tls.Config{Certificates: []tls.Certificate{a.Certificate(t, "data.example")}}}
	}
	good := listen(t, numbers{40, 0, -1}, of(ours), nil)
	bad := listen(t, numbers{40, 0, -1}, of(others), nil)
	o := service.Options{TLS: &tls.Config{RootCAs: ours.Pool()}, Key: key, Patience: patience}
	if _, err := service.Dial(t.Context(), o, good.Addr(), bad.Addr()); !errors.Is(err, service.ErrCertificate) ||
		!strings.Contains(err.Error(), bad.Addr()) {
		t.Errorf("%v", err)
	}
	again := listen(t, numbers{40, 0, -1}, of(ours), nil)
	addr := again.Addr()
	l := dial(t, service.Options{TLS: o.TLS}, good.Addr(), addr)
	again.Close()
	replaced := loader(numbers{40, 0, -1}, nil)
	defer replaced.Close()
	opts := of(others)
	opts.Key = key
	h, err := service.Listen(replaced, addr, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for range 3 {
		once(t, 40, epoch(t, l.Batches(t.Context()), nil))
	}
	for !errors.Is(l.Stats().Hosts[1].Err, service.ErrCertificate) { // it tries again, and says so
		if t.Context().Err() != nil || h.Stats().Batches > 0 {
			t.Fatalf("%+v", l.Stats().Hosts[1])
		}
	}
}
