package broker

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Options configure a node. The zero value listens on any free port of the loopback interface,
// and stores its data in a fixed directory under [os.TempDir], which [Broker.Close] does not
// remove. Nodes on the same machine must not share a directory.
type Options struct {
	Name string // of the node; must be unique in its cluster
	Host string // default 127.0.0.1
	Port int    // 0 means any free port
	Dir  string // directory of the data

	MaxPayload  int   // maximum size of a message; default 8 MiB
	MaxStore    int64 // maximum bytes on disk; default three quarters of the free space
	Reserve     int64 // bytes to keep free on disk; default 256 MiB, at most 1/8 of the free space
	SyncAlways  bool  // sync to disk before a message is acknowledged
	NoJetStream bool  // for tests of clients that need JetStream
	Debug       bool

	// Told is called with messages for the administrator of the node, each a sentence. It may be
	// nil.
	Told func(string) `json:"-"`

	User, Password string
	Token          string
	NKeys          []string    // public keys
	TLS            *tls.Config `json:"-"` // must have a certificate

	// Operator is the JWT of an operator, and Accounts are the JWTs of its accounts, which must
	// include the system account. Clients then need the credentials of a user of an account. Each
	// account has its own queues, and the storage limit in its JWT.
	Operator string
	Accounts []string

	Cluster     string // name of the cluster, empty for none
	ClusterHost string // default Host
	ClusterPort int
	Routes      []string // host:port for routes of the other nodes

	// ClusterSecret authenticates the nodes to each other. It must be the same on all nodes. By
	// default, it is derived from Token or Password. Clients that authenticate in another way need
	// it, unless the nodes listen on the loopback interface only.
	ClusterSecret string `json:"-"`
}

const (
	defaultPayload = 8 << 20
	readyTime      = 20 * time.Second
	// A route to an unreachable node is closed after routePing*(routePings+1). The server's
	// defaults are more than a minute, and messages sent in this time are lost.
	routePing  = 2 * time.Second
	routePings = 3
)

// A Broker is a running node, made by [Start]. Its methods may be called from several
// goroutines.
type Broker struct {
	s    *server.Server
	tls  bool
	disk *disk

	closeDisk func() error
}

// Start starts a node and waits, for at most 20 seconds, until it accepts connections. A node of a
// cluster may not accept values until it has found other nodes; see [Broker.Ready]. The caller must
// close the Broker.
func Start(o Options) (*Broker, error) {
	so, err := o.serverOptions()
	if err != nil {
		return nil, err
	}
	s, err := server.NewServer(so)
	if err != nil {
		return nil, fmt.Errorf("broker: %w", err)
	}
	s.ConfigureLogger()
	s.Start()
	if !s.ReadyForConnections(readyTime) {
		s.Shutdown()
		return nil, fmt.Errorf("broker: %w: check that %s is free and that %s is writable", errNotReady,
			net.JoinHostPort(so.Host, strconv.Itoa(so.Port)), so.StoreDir)
	}
	if so.JetStream && !s.JetStreamEnabled() {
		s.Shutdown()
		return nil, fmt.Errorf("broker: %w: check that %s is writable", errNotReady, so.StoreDir)
	}
	b := &Broker{s: s, tls: o.TLS != nil}
	if so.JetStream {
		if b.disk, err = watchDisk(s, o); err != nil {
			s.Shutdown()
			return nil, err
		}
	}
	b.closeDisk = sync.OnceValue(b.disk.close)
	return b, nil
}

var errNotReady = errors.New("the server did not start")

func (o Options) serverOptions() (*server.Options, error) {
	so := &server.Options{
		ServerName: o.Name, Host: o.Host, Port: o.Port, NoSigs: true, NoLog: !o.Debug, Debug: o.Debug,
		JetStream: !o.NoJetStream, StoreDir: o.Dir, JetStreamMaxStore: o.MaxStore, SyncAlways: o.SyncAlways,
		MaxPayload: int32(o.MaxPayload), Username: o.User, Password: o.Password, Authorization: o.Token,
	}
	if so.Host == "" {
		so.Host = "127.0.0.1"
	}
	if so.Port == 0 {
		so.Port = server.RANDOM_PORT
	}
	if so.MaxPayload == 0 {
		so.MaxPayload = defaultPayload
	}
	so.MaxPending = max(server.MAX_PENDING_SIZE, 8*int64(so.MaxPayload))
	for _, k := range o.NKeys {
		so.Nkeys = append(so.Nkeys, &server.NkeyUser{Nkey: k})
	}
	if o.Operator != "" {
		if err := o.configureOperator(so); err != nil {
			return nil, fmt.Errorf("broker: %w", err)
		}
	}
	if o.TLS != nil {
		so.TLS, so.TLSConfig, so.TLSTimeout = true, o.TLS, 5
		so.TLSVerify = o.TLS.ClientAuth == tls.RequireAndVerifyClientCert
	}
	if o.Cluster != "" {
		so.Cluster = server.ClusterOpts{Name: o.Cluster, Host: o.ClusterHost, Port: o.ClusterPort,
			PingInterval: routePing, MaxPingsOut: routePings}
		if so.Cluster.Host == "" {
			so.Cluster.Host = so.Host
		}
		pass := o.routeCredentials()
		if pass == nil && o.restrictsClients() && !isLoopback(so.Cluster.Host) {
			return nil, errOpenRoutes
		}
		if pass != nil {
			so.Cluster.Username = pass.Username()
			so.Cluster.Password, _ = pass.Password()
		}
		for _, r := range o.Routes {
			u, err := url.Parse("nats://" + strings.TrimPrefix(r, "nats://"))
			if err != nil {
				return nil, fmt.Errorf("broker: route %q: %w", r, err)
			}
			u.User = pass
			so.Routes = append(so.Routes, u)
		}
	}
	return so, nil
}

var errOpenRoutes = errors.New("broker: clients must authenticate, but any program could join the cluster as a " +
	"node and read everything: set ClusterSecret (-cluster-secret-file)")

// restrictsClients reports whether clients must authenticate without a token or a password.
func (o Options) restrictsClients() bool {
	return len(o.NKeys) > 0 || o.Operator != "" || o.TLS != nil && o.TLS.ClientAuth == tls.RequireAndVerifyClientCert
}

// isLoopback reports whether host is an address of the loopback interface.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// routeCredentials returns the credentials for routes between nodes, because a program that
// connects as a node can read and write everything. The password is an HMAC of the cluster secret,
// or of the clients' token or password, and does not reveal it. Without any of them,
// routeCredentials returns nil, and routes are not authenticated.
func (o Options) routeCredentials() *url.Userinfo {
	secret := cmp.Or(o.ClusterSecret, o.Token, o.Password)
	if secret == "" {
		return nil
	}
	sum := hmac.New(sha256.New, []byte(secret))
	sum.Write([]byte("shoal broker node"))
	return url.UserPassword("node", hex.EncodeToString(sum.Sum(nil)))
}

// URL returns the URL for clients: with the scheme tls if the node has a certificate.
func (b *Broker) URL() string {
	u := b.s.ClientURL()
	if b.tls {
		_, host, _ := strings.Cut(u, "://")
		u = "tls://" + host
	}
	return u
}

// Ready reports whether the node accepts values. In a cluster, this requires an elected leader.
func (b *Broker) Ready() bool {
	return b.s.JetStreamEnabled() && (!b.s.JetStreamIsClustered() || b.s.JetStreamIsCurrent())
}

// Dir returns the directory of the data.
func (b *Broker) Dir() string { return b.s.StoreDir() }

// Stats are counts of a node.
type Stats struct {
	Connections, Streams int
	Messages             uint64 // stored messages
	Bytes                uint64
	In, Out              int64 // messages since the start
	Full                 bool  // the disk is full: values are refused
}

// Stats returns the current counts. Counts that the node cannot tell are 0.
func (b *Broker) Stats() Stats {
	s := Stats{Connections: b.s.NumClients(), Full: b.disk != nil && b.disk.full.Load()}
	if v, err := b.s.Varz(nil); err == nil {
		s.In, s.Out = v.InMsgs, v.OutMsgs
	}
	if j, err := b.s.Jsz(nil); err == nil {
		s.Streams, s.Messages, s.Bytes = j.Streams, j.Messages, j.Bytes
	}
	return s
}

// Close stops the node and waits until its data is on disk. Close is idempotent: later calls return
// the error of the first.
func (b *Broker) Close() error {
	err := b.closeDisk()
	b.s.Shutdown()
	b.s.WaitForShutdown()
	return err
}
