package nats

import (
	"fmt"
	"net"
	"time"
)

// silent is the time after which a host that does not respond is considered partitioned: it did not
// answer a ping, or accepted no data. The nodes of shoal-broker use about the same time between
// each other.
const silent = 10 * time.Second

// A socket is a connection to a broker that fails if no data is accepted for [silent]. The deadline
// is needed because the client library writes under a lock, for up to a minute, and must take the
// same lock to check for missing pings.
type socket struct{ net.Conn }

// mostWrite is the number of bytes that must be accepted within silent.
const mostWrite = 64 << 10

func (s socket) Write(b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var m int
		if err = s.SetWriteDeadline(time.Now().Add(silent)); err == nil {
			m, err = s.Conn.Write(b[n:min(len(b), n+mostWrite)])
		}
		n += m
	}
	if err != nil {
		s.Close() // makes the library reconnect
		return n, fmt.Errorf("%w: %w", errCut, err)
	}
	return n, nil
}

// A dialer makes the client library's connections as sockets.
type dialer net.Dialer

// Dial implements [client.CustomDialer].
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	c, err := (*net.Dialer)(d).Dial(network, address)
	if err != nil {
		return nil, err
	}
	return socket{c}, nil
}
