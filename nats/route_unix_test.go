//go:build unix

package nats_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/nats"
	"github.com/shoal-mp/shoal/nats/broker"
	"github.com/shoal-mp/shoal/test/testutil"
)

// The nodes of a cluster authenticate each other by the secret of their clients, or by one of their
// own, and refuse other nodes.
func TestBroker_WithoutTheSecretNobodyIsANode(t *testing.T) {
	for name, o := range map[string]broker.Options{
		"token": {Token: "secret"}, "cluster secret": {ClusterSecret: "secret"},
	} {
		t.Run(name, func(t *testing.T) { refuseStrangers(t, o) })
	}
}

// A cluster that restricts its clients must not be open to other nodes.
func TestBroker_RefusesOpenRoutes(t *testing.T) {
	open := broker.Options{Dir: t.TempDir(), NKeys: []string{"UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"},
		Name: "node", Cluster: "test", ClusterHost: "0.0.0.0"}
	if b, err := broker.Start(open); err == nil || !strings.Contains(err.Error(), "ClusterSecret") {
		t.Errorf("got %v, want an error that names ClusterSecret", err)
		if err == nil {
			b.Close()
		}
	}
	open.ClusterHost = "127.0.0.1"
	start(t, open)
}

// refuseStrangers starts a cluster of three nodes with these options, and connects to it as a node
// without the secret.
func refuseStrangers(t *testing.T, o broker.Options) {
	var ports [3]int
	var routes []string
	for i := range ports {
		l := listenLow(t)
		defer l.Close()
		ports[i] = l.Addr().(*net.TCPAddr).Port
		routes = append(routes, fmt.Sprint("127.0.0.1:", ports[i]))
		l.Close()
	}
	var nodes []*broker.Broker
	for i, p := range ports {
		o.Name, o.Cluster, o.ClusterPort, o.Routes = fmt.Sprint("node", i), "test", p, routes
		nodes = append(nodes, start(t, o))
	}
	for _, b := range nodes {
		testutil.Eventually(t, b.Ready, "the cluster does not get ready")
	}
	ctx := testutil.Context(t)
	c, err := nats.Connect(ctx, nodes[0].URL(), nats.Options{Token: o.Token})
	testutil.NoError(t, err)
	t.Cleanup(func() { testutil.NoError(t, c.Close()) })
	q := open[int](t, c, "queue", nats.QueueOptions{Replicas: 3})
	testutil.NoError(t, q.Put(ctx, 1))
	for _, says := range []string{`{"name":"stranger","cluster":"test"}`,
		`{"name":"stranger","cluster":"test","user":"node","pass":"secret"}`} {
		if answer := asNode(t, routes[0], says); !strings.Contains(answer, "Authorization Violation") {
			t.Errorf("a stranger that says %s hears %q", says, answer)
		}
	}
}

// asNode connects as another node would and returns what the node answers.
func asNode(t *testing.T, addr, says string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	testutil.NoError(t, err)
	defer c.Close()
	testutil.NoError(t, c.SetDeadline(time.Now().Add(3*time.Second)))
	r := bufio.NewReader(c)
	info, err := r.ReadString('\n')
	testutil.NoError(t, err)
	if !strings.HasPrefix(info, "INFO ") {
		t.Fatalf("a node begins with %q", info)
	}
	fmt.Fprintf(c, "CONNECT %s\r\nPING\r\n", says)
	answer, _ := io.ReadAll(r)
	return string(answer)
}
