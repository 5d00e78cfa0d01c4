// Command shoal-broker runs a NATS broker for package nats: a single node, a cluster of three nodes
// on this machine, or one node of a cluster of several machines. "shoal broker" executes it.
//
//	shoal-broker                              one node on 127.0.0.1:4222
//	shoal-broker -nodes 3                     three nodes, one process each, on ports 4222 to 4224
//	shoal-broker -host 0.0.0.0 -name a -peers b,c -user u -password-file f
//
// It prints the URL to pass to nats.Connect on standard output. On standard error it prints the
// data directory and, at most every ten seconds, the numbers of clients, streams and messages and
// the message rates. It shuts down cleanly on SIGINT and SIGTERM. It is a separate program because
// the NATS server is large and needs package net, and shoal is built without package net.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/shoal-mp/shoal/cmd/internal/beside"
	"github.com/shoal-mp/shoal/cmd/internal/words"
	"github.com/shoal-mp/shoal/nats/broker"
)

// settings holds the values of the command-line flags.
type settings struct {
	broker.Options
	nodes                                 int
	peers, passwordFile, tokenFile, nkeys string
	clusterSecretFile                     string
	operator, accounts                    string
	certificate, key, authority           string
	clusterPort                           int
	quiet                                 bool
}

func main() {
	var s settings
	flag.StringVar(&s.Host, "host", "127.0.0.1",
		"`address` to listen on; 0.0.0.0 for all interfaces, which requires credentials")
	flag.IntVar(&s.Port, "port", 4222, "port for clients; 0 for any free port")
	flag.StringVar(&s.Dir, "dir", "", "`directory` for the data (default shoal-broker in the user's cache directory)")
	flag.IntVar(&s.nodes, "nodes", 1, "number of nodes on this machine, 1 or 3; each is a process")
	flag.StringVar(&s.Name, "name", "", "name of this node, unique in its cluster (default the host name)")
	flag.StringVar(&s.peers, "peers", "", "other `hosts` of the cluster, comma-separated, as host or host:port")
	flag.IntVar(&s.clusterPort, "cluster-port", 0, "port for the other nodes (default the port for clients + 2000)")
	flag.StringVar(&s.clusterSecretFile, "cluster-secret-file", "", "`file` with the secret of the nodes of a "+
		"cluster, the same for all (default derived from the token or the password)")
	flag.IntVar(&s.MaxPayload, "max-payload", 8<<20,
		"maximum message size in `bytes`; larger values are sent in chunks")
	flag.Int64Var(&s.MaxStore, "max-store", 0, "maximum `bytes` on the disk (default three quarters of the free space)")
	flag.Int64Var(&s.Reserve, "reserve", 0, "`bytes` of the disk to keep free (default 256 MiB, at most an eighth "+
		"of the free space)")
	flag.BoolVar(&s.SyncAlways, "sync", false, "sync each message to the disk: safe against power loss, but slow")
	flag.StringVar(&s.User, "user", "", "user `name` of clients; requires -password-file")
	flag.StringVar(&s.passwordFile, "password-file", "", "`file` with the password")
	flag.StringVar(&s.tokenFile, "token-file", "", "`file` with the token of clients")
	flag.StringVar(&s.nkeys, "nkeys", "", "public `keys` of clients, comma-separated")
	flag.StringVar(&s.operator, "operator", "",
		"`file` with an operator's JWT: clients authenticate with credentials files of users of its accounts")
	flag.StringVar(&s.accounts, "accounts", "",
		"`files` with the JWTs of the accounts, including the system account, comma-separated")
	flag.StringVar(&s.certificate, "cert", "", "`file` with the TLS certificate")
	flag.StringVar(&s.key, "key", "", "`file` with the certificate's key")
	flag.StringVar(&s.authority, "ca", "", "`file` with the CA certificates that verify clients, which must then "+
		"present a certificate")
	flag.BoolVar(&s.Debug, "debug", false, "print the server's log")
	flag.BoolVar(&s.quiet, "quiet", false, "print only the URL and errors")
	beside.ParseFlags("shoal-broker", flag.CommandLine, os.Args[1:])
	if err := s.check(); err != nil {
		fmt.Fprintln(os.Stderr, "shoal-broker:", words.CleanError(err))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := s.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "shoal-broker:", words.CleanError(err))
		os.Exit(1)
	}
}

// check returns an error for positional arguments, for an invalid number of nodes and for flags
// that contradict each other.
func (s *settings) check() error {
	switch {
	case flag.NArg() > 0:
		return fmt.Errorf("unexpected argument %q: see -help", flag.Arg(0))
	case s.nodes != 1 && s.nodes != 3:
		return fmt.Errorf("-nodes %d: want 1 or 3", s.nodes)
	case s.nodes == 3 && s.peers != "":
		return errors.New("-nodes 3 starts all nodes on this machine: it cannot be combined with -peers")
	case (s.User == "") != (s.passwordFile == ""):
		return errors.New("-user and -password-file must be set together")
	case (s.operator == "") != (s.accounts == ""):
		return errors.New("-operator and -accounts must be set together")
	case (s.certificate == "") != (s.key == ""):
		return errors.New("-cert and -key must be set together")
	case s.authority != "" && s.certificate == "":
		return errors.New("-ca verifies clients over TLS: set -cert and -key, too")
	}
	return nil
}

func (s *settings) run(ctx context.Context) error {
	if err := s.fillDefaults(); err != nil {
		return err
	}
	if s.nodes == 3 {
		return s.superviseNodes(ctx)
	}
	return s.serve(ctx)
}

// fillDefaults reads the files that flags name, fills in defaults and creates the data directory.
// It returns an error if a file cannot be read, is empty or has invalid contents, if the data
// directory cannot be created, or if other machines could connect without credentials.
func (s *settings) fillDefaults() (err error) {
	if s.Dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return fmt.Errorf("%w: set -dir", err)
		}
		s.Dir = filepath.Join(cache, "shoal-broker")
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return err
	}
	for _, f := range []struct {
		path string
		into *string
	}{{s.passwordFile, &s.Password}, {s.tokenFile, &s.Token},
		{s.clusterSecretFile, &s.ClusterSecret}} {
		if f.path == "" {
			continue
		}
		text, err := os.ReadFile(f.path)
		if err != nil {
			return err
		}
		if *f.into = strings.TrimSpace(string(text)); *f.into == "" {
			return fmt.Errorf("secret file %s is empty: create a secret with: head -c 32 /dev/urandom | base64 >%[1]s",
				f.path)
		}
	}
	if s.operator != "" {
		if err := s.readJWTs(); err != nil {
			return err
		}
	}
	if s.nkeys != "" {
		s.NKeys = strings.Split(s.nkeys, ",")
	}
	if s.TLS, err = s.tlsConfig(); err != nil {
		return err
	}
	open := s.operator == "" && s.User == "" && s.Token == "" && len(s.NKeys) == 0 && s.authority == ""
	if ip := net.ParseIP(s.Host); open && (ip == nil || !ip.IsLoopback()) && s.Host != "localhost" {
		return errors.New("a host other than the loopback requires credentials: set -user, -token-file, -nkeys, " +
			"-operator or -ca")
	}
	if s.peers != "" {
		s.joinCluster(strings.Split(s.peers, ","))
	}
	return nil
}

func (s *settings) readJWTs() error {
	text, err := os.ReadFile(s.operator)
	if err != nil {
		return err
	}
	s.Operator = strings.TrimSpace(string(text))
	for _, file := range strings.Split(s.accounts, ",") {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		s.Accounts = append(s.Accounts, strings.TrimSpace(string(text)))
	}
	return nil
}

// joinCluster configures the node as a member of a cluster. peers are the hosts of the other
// nodes, with or without a port; those without a port get the cluster port.
func (s *settings) joinCluster(peers []string) {
	if s.clusterPort == 0 {
		s.clusterPort = s.Port + 2000
	}
	if s.Name == "" {
		s.Name, _ = os.Hostname()
	}
	s.Cluster, s.ClusterPort = "shoal", s.clusterPort
	for _, p := range peers {
		if _, _, err := net.SplitHostPort(p); err != nil {
			p = net.JoinHostPort(p, strconv.Itoa(s.clusterPort))
		}
		s.Routes = append(s.Routes, p)
	}
}

func (s *settings) tlsConfig() (*tls.Config, error) {
	if s.certificate == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(s.certificate, s.key)
	if err != nil {
		return nil, err
	}
	c := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	if s.authority != "" {
		text, err := os.ReadFile(s.authority)
		if err != nil {
			return nil, err
		}
		c.ClientCAs, c.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		if !c.ClientCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s: no PEM certificate found", s.authority)
		}
	}
	return c, nil
}
