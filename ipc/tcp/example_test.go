package tcp_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log"
	"math/big"
	"time"

	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/ipc/tcp"
)

// The caller knows the listener's certificate by its fingerprint. So a thief of the key alone
// cannot stand in for the listener.
func ExampleOptions() {
	key := []byte("16 random bytes or more")
	cert, err := newCertificate() // or tls.LoadX509KeyPair
	if err != nil {
		log.Fatal(err)
	}
	l, err := ipc.ListenWith[string]("tcp://127.0.0.1:0", key, ipc.MeetingOptions{
		Transport: tcp.Options{TLS: &tls.Config{Certificates: []tls.Certificate{cert}}}})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := ipc.DialWith[string](ctx, l.Addr(), key, ipc.MeetingOptions{
		Transport: tcp.Options{Fingerprint: sha256.Sum256(cert.Certificate[0])}})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	_, err = ipc.DialWith[string](ctx, l.Addr(), key, ipc.MeetingOptions{
		Transport: tcp.Options{Fingerprint: sha256.Sum256([]byte("another"))}})
	fmt.Println(errors.Is(err, tcp.ErrFingerprint))
	// Output: true
}

// newCertificate returns a certificate that signs itself.
func newCertificate() (tls.Certificate, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().AddDate(1, 0, 0)}
	b, err := x509.CreateCertificate(rand.Reader, of, of, public, private)
	return tls.Certificate{Certificate: [][]byte{b}, PrivateKey: private}, err
}
