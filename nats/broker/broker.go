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
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Options describe a node. The zero value listens on any free port of the loopback, and keeps its
// data in a temporary folder of the system.
type Options struct {
	Name string // of the node, which no other in its cluster has
	Host string // default 127.0.0.1
	Port int    // 0 for any
	Dir  string // where the data is

	MaxPayload  int   // of a message; default 8 MiB
	MaxStore    int64 // bytes on the disk; default three quarters of what is free
	Reserve     int64 // bytes of the disk that stay free; default 256 MiB, at most an eighth of what is free
	SyncAlways  bool  // write through to the disk before a message is acknowledged
	NoJetStream bool  // for tests of those who need it
	Debug       bool

	// Told is told, in a sentence, what a person should know of the node. It may be nil.
	Told func(string) `json:"-"`

	User, Password string
	Token          string
	NKeys          []string    // public keys
	TLS            *tls.Config `json:"-"` // with a certificate

	// Operator is the JWT of an operator, and Accounts are those of its accounts, the system
	// account among them: clients give the credentials of a user of one. An account has its own
	// queues, and the room that its JWT says.
	Operator string
	Accounts []string

	Cluster     string // name of the cluster, empty for none
	ClusterHost string // default Host
	ClusterPort int
	Routes      []string // host:port of the other nodes, where they listen for nodes
}

const (
	defaultPayload = 8 << 20
	readyTime      = 20 * time.Second
	// A node that is cut off is given up after routePing times one more than routePings. The
	// server's own times are a minute and more, in which it sends what it has into the void.
	routePing  = 2 * time.Second
	routePings = 3
)

// A Broker is a node that runs.
type Broker struct {
	s    *server.Server
	tls  bool
	disk *disk
}

// Start starts a node and waits until it takes connections. A node of a cluster may have to wait
// for others before it takes values; see Ready.
func Start(o Options) (*Broker, error) {
	so, err := o.server()
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
		return nil, fmt.Errorf("broker: %w: see that %s is free, and %s can be written", errNotReady,
			net.JoinHostPort(so.Host, strconv.Itoa(so.Port)), so.StoreDir)
	}
	if so.JetStream && !s.JetStreamEnabled() {
		s.Shutdown()
		return nil, fmt.Errorf("broker: %w: see that %s can be written", errNotReady, so.StoreDir)
	}
	b := &Broker{s: s, tls: o.TLS != nil}
	if so.JetStream {
		if b.disk, err = watchDisk(s, o); err != nil {
			s.Shutdown()
			return nil, err
		}
	}
	return b, nil
}

var errNotReady = errors.New("it does not start")

func (o Options) server() (*server.Options, error) {
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
		if err := o.trust(so); err != nil {
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
		pass := o.pass()
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

// pass is what the nodes of a cluster give each other, nil if clients give no secret: a program
// that passes for a node reads and writes everything. It is made of the clients' secret, and does
// not tell it.
func (o Options) pass() *url.Userinfo {
	secret := cmp.Or(o.Token, o.Password)
	if secret == "" {
		return nil
	}
	sum := hmac.New(sha256.New, []byte(secret))
	sum.Write([]byte("shoal broker node"))
	return url.UserPassword("node", hex.EncodeToString(sum.Sum(nil)))
}

// URL returns where clients connect to.
func (b *Broker) URL() string {
	u := b.s.ClientURL()
	if b.tls {
		_, host, _ := strings.Cut(u, "://")
		u = "tls://" + host
	}
	return u
}

// Ready reports whether the node takes values: a cluster has chosen who leads it.
func (b *Broker) Ready() bool {
	return b.s.JetStreamEnabled() && (!b.s.JetStreamIsClustered() || b.s.JetStreamIsCurrent())
}

// Dir returns where the data is.
func (b *Broker) Dir() string { return b.s.StoreDir() }

// Stats say what a node has and does.
type Stats struct {
	Connections, Streams int
	Messages             uint64 // that are kept
	Bytes                uint64
	In, Out              int64 // messages since its start
	Full                 bool  // the disk is: it refuses values
}

// Stats returns what the node has and does now.
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

// Close stops the node and waits until its data is on the disk.
func (b *Broker) Close() error {
	err := b.disk.close()
	b.s.Shutdown()
	b.s.WaitForShutdown()
	return err
}
