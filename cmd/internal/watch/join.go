package watch

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// A Join is the shoal watch of another machine, whose programs are shown as well.
type Join struct {
	url   *url.URL
	print [sha256.Size]byte // of its certificate; zero: authorities say whether it is right
	roots *x509.CertPool    // nil: those of the system
}

// ParseJoin reads the URL that the other shoal watch has printed. Behind a # it may have the
// certificate's fingerprint, which is then all that the certificate is checked by. Without one it
// is checked by roots, or by the system's authorities where that is nil. Errors do not repeat the
// token.
func ParseJoin(text string, roots *x509.CertPool) (Join, error) {
	u, err := url.Parse(text)
	if err != nil {
		return Join{}, errors.New("it is no URL: give the one that the other shoal watch has printed")
	}
	j := Join{url: &url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}, roots: roots}
	token := strings.Trim(u.Path, "/")
	switch {
	case u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return Join{}, errors.New("it is no URL of https: give the one that the other shoal watch has printed")
	case token == "" || strings.Contains(token, "/") || u.User != nil || u.RawQuery != "":
		return Join{}, fmt.Errorf("%s: the URL has a token behind its port, and nothing else: give it whole", u.Host)
	case u.Scheme == "http" && !isLoopback(u.Hostname()):
		return Join{}, fmt.Errorf("%s: the network could read the token without TLS: start that shoal watch with -cert and -key, "+
			"or -self-signed, or reach its loopback by ssh -L", u.Host)
	case u.Scheme == "http" && u.Fragment != "":
		return Join{}, fmt.Errorf("%s: without TLS there is no certificate with a fingerprint", u.Host)
	}
	if u.Fragment != "" {
		sum, err := hex.DecodeString(strings.ReplaceAll(u.Fragment, ":", ""))
		if err != nil || len(sum) != sha256.Size {
			return Join{}, fmt.Errorf("%s: behind # stands no fingerprint, which is the certificate's SHA-256 in 64 digits", u.Host)
		}
		j.print = [sha256.Size]byte(sum)
	}
	j.url.Path = "/" + token + "/"
	return j, nil
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// key is what tells joins apart: the host and the port.
func (j Join) key() string { return j.url.Host }

// client makes one request at a time, and follows no redirection: the token is for this host.
func (j Join) client() *http.Client {
	c := &tls.Config{RootCAs: j.roots, MinVersion: tls.VersionTLS12}
	if j.print != [sha256.Size]byte{} {
		c.InsecureSkipVerify = true // by authorities: VerifyConnection checks it
		c.VerifyConnection = func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 || sha256.Sum256(s.PeerCertificates[0].Raw) != j.print {
				return errPrint
			}
			return nil
		}
	}
	dialer := &net.Dialer{Timeout: patience, KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: patience, Interval: patience / 2, Count: 3}}
	return &http.Client{
		Transport: &http.Transport{DialContext: dialer.DialContext, TLSClientConfig: c, TLSHandshakeTimeout: patience,
			ResponseHeaderTimeout: patience, MaxResponseHeaderBytes: 16 << 10, DisableKeepAlives: true,
			DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

var errPrint = errors.New("its certificate has another fingerprint than the one behind # in -join")

// open asks for the stream of readings. Its error is for people, and has no token.
func (j Join) open(ctx context.Context) (*http.Response, error) {
	at := *j.url
	at.Path += own
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("a URL that cannot be asked: %w", bare(err))
	}
	answer, err := j.client().Do(r)
	if err != nil {
		return nil, advise(bare(err))
	}
	kind := answer.Header.Get("Content-Type")
	switch {
	case answer.StatusCode == http.StatusOK && kind == "text/event-stream":
		return answer, nil
	case answer.StatusCode == http.StatusForbidden:
		err = errors.New("it refuses the token: it was started anew, so give -join the URL that it has printed last")
	case answer.StatusCode == http.StatusMisdirectedRequest:
		err = errors.New("it does not answer to the name in the URL: give -join the URL that it has printed")
	case answer.StatusCode == http.StatusServiceUnavailable:
		err = errors.New("it has too many pages open")
	default:
		err = fmt.Errorf("it is no shoal watch of this version: %d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
	}
	answer.Body.Close()
	return nil, err
}

// bare takes the URL, which has the token, from an error of net/http.
func bare(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// advise says what to do about a certificate.
func advise(err error) error {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return fmt.Errorf("%w: give -ca, or the URL with the fingerprint of a certificate that is -self-signed", err)
	}
	return err
}

// backoff is how long to wait before a host is asked again that has failed n times.
func backoff(n int) time.Duration { return min(5*time.Second, 250*time.Millisecond<<min(n, 5)) }
