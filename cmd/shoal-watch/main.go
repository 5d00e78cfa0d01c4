// Command shoal-watch serves a web page that shows the running Shoal programs of the current user.
// "shoal watch" executes it.
//
//	shoal-watch                          on a free port of 127.0.0.1
//	shoal-watch -open                    and opens the page in the user's browser
//	shoal-watch -host 0.0.0.0 -self-signed   for other machines, with TLS
//	shoal-watch -join https://…          also shows the programs of another machine
//
// It prints the URL of the page, which contains an access token and must be kept secret. It shuts
// down cleanly on SIGINT and SIGTERM. It is a separate program because it needs package net, and
// shoal is built without package net.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/shoal-mp/shoal/cmd/internal/beside"
	"github.com/shoal-mp/shoal/cmd/internal/watch"
	"github.com/shoal-mp/shoal/cmd/internal/words"
)

// settings holds the values of the command-line flags.
type settings struct {
	watch.Options
	certificate, key string
	selfSigned, open bool
	authorities      string
	joins            []string
}

func main() {
	var s settings
	flag.StringVar(&s.Host, "host", "127.0.0.1", "`address` to listen on; any but the loopback requires TLS")
	flag.IntVar(&s.Port, "port", 0, "port to listen on; 0 for any free port")
	flag.DurationVar(&s.Every, "every", time.Second, "`time` between two readings")
	flag.StringVar(&s.certificate, "cert", "", "`file` with the TLS certificate")
	flag.StringVar(&s.key, "key", "", "`file` with the certificate's key")
	flag.BoolVar(&s.selfSigned, "self-signed", false, "create a TLS certificate and print its fingerprint")
	flag.BoolVar(&s.open, "open", false, "open the page in this user's browser")
	flag.Func("join", "`URL` printed by shoal watch on another machine, to show its programs as well, or a file "+
		"with one such URL per line; may be repeated", func(text string) error {
		s.joins = append(s.joins, text)
		return nil
	})
	flag.StringVar(&s.authorities, "ca", "", "`file` with the CA certificates that verify joined hosts, instead "+
		"of the system's")
	beside.ParseFlags("shoal-watch", flag.CommandLine, os.Args[1:])
	if err := s.check(); err != nil {
		fmt.Fprintln(os.Stderr, "shoal-watch:", words.CleanError(err))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := s.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "shoal-watch:", words.CleanError(err))
		os.Exit(1)
	}
}

func (s *settings) check() error {
	switch {
	case flag.NArg() > 0:
		return fmt.Errorf("unexpected argument %q: see -help", flag.Arg(0))
	case s.Every < 50*time.Millisecond || s.Every > time.Hour:
		return fmt.Errorf("-every %v: want 50ms to 1h", s.Every)
	case s.Port < 0 || s.Port > 65535:
		return fmt.Errorf("-port %d: want 0 to 65535", s.Port)
	case (s.certificate == "") != (s.key == ""):
		return errors.New("-cert and -key must be set together")
	case s.certificate != "" && s.selfSigned:
		return errors.New("-self-signed cannot be combined with -cert and -key")
	case s.authorities != "" && len(s.joins) == 0:
		return errors.New("-ca requires -join")
	}
	return nil
}

// parseJoins parses the -join URLs, reading them from a file if the value is not a URL, and the -ca
// certificates.
func (s *settings) parseJoins() error {
	var roots *x509.CertPool
	if s.authorities != "" {
		text, err := os.ReadFile(s.authorities)
		if err != nil {
			return fmt.Errorf("-ca: %w", err)
		}
		if roots = x509.NewCertPool(); !roots.AppendCertsFromPEM(text) {
			return fmt.Errorf("-ca %s: no PEM certificate found", s.authorities)
		}
	}
	for _, text := range s.joins {
		urls := []string{text}
		if !strings.Contains(text, "://") {
			file, err := os.ReadFile(text)
			if err != nil {
				return fmt.Errorf("-join: not a URL, and reading it as a file failed: %w", err)
			}
			urls = strings.Split(string(file), "\n")
		}
		for i, u := range urls {
			if u = strings.TrimSpace(u); u == "" && len(urls) > 1 {
				continue
			}
			j, err := watch.ParseJoin(u, roots)
			if err != nil && len(urls) > 1 {
				return fmt.Errorf("-join, line %d of %s: %w", i+1, text, err)
			} else if err != nil {
				return fmt.Errorf("-join: %w", err)
			}
			s.Joins = append(s.Joins, j)
		}
	}
	return nil
}

func (s *settings) run(ctx context.Context) (err error) {
	if s.selfSigned {
		s.Certificate, err = watch.SelfSigned(s.Host)
	} else if s.certificate != "" {
		s.Certificate, err = load(s.certificate, s.key)
	}
	if err := errors.Join(err, s.parseJoins()); err != nil {
		return err
	}
	server, err := watch.Listen(s.Options)
	switch {
	case errors.Is(err, watch.ErrHost):
		return fmt.Errorf("%w: set -cert and -key, or -self-signed, or connect to the loopback by "+
			"ssh -L PORT:127.0.0.1:PORT", err)
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w: set another -port, or leave it out", err)
	case err != nil:
		return err
	}
	fmt.Println(server.URL)
	if s.selfSigned {
		fmt.Println("SHA-256 of the certificate, which the browser shows with its warning:")
		fmt.Println(watch.Fingerprint(s.Certificate))
		fmt.Println("URL with the fingerprint, for -join of another shoal watch:")
		fmt.Printf("%s#%s\n", server.URL, strings.ReplaceAll(watch.Fingerprint(s.Certificate), ":", ""))
	}
	if s.open {
		if err := openBrowser(ctx, server.URL); err != nil {
			words.Fprintf(os.Stderr, "shoal-watch: cannot open a browser (%v): open the URL manually\n", err)
		}
	}
	return server.Serve(ctx)
}

// load reads a certificate and its key. It prints a warning if the certificate has expired, because
// browsers warn about such a page.
func load(certificate, key string) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("-cert %s -key %s: %w", certificate, key, err)
	}
	if pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
		return nil, fmt.Errorf("-cert %s: %w", certificate, err)
	}
	if time.Now().After(pair.Leaf.NotAfter) {
		words.Fprintf(os.Stderr, "shoal-watch: certificate %s has expired: browsers will show a warning\n",
			certificate)
	}
	return &pair, nil
}

// openBrowser opens a URL in the user's default browser. It does not wait for the browser.
func openBrowser(ctx context.Context, url string) error {
	opener := []string{"xdg-open", url}
	switch runtime.GOOS {
	case "darwin":
		opener[0] = "open"
	case "windows":
		opener = []string{"rundll32", "url.dll,FileProtocolHandler", url}
	}
	c := exec.CommandContext(ctx, opener[0], opener[1:]...)
	if err := c.Start(); err != nil {
		return err
	}
	go c.Wait()
	return nil
}
