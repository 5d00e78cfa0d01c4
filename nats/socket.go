package nats

import (
	"fmt"
	"net"
	"time"
)

// silent is how long a broker may be silent before its host counts as cut off: without an answer to
// a ping, or without taking a byte of what is sent. It is about what the nodes of shoal-broker give
// each other.
const silent = 10 * time.Second

// A socket is the connection with a broker, which ends where nothing that is sent arrives. The
// client library writes under a lock, for a minute if need be, and looks under the same lock
// whether pings were answered.
type socket struct{ net.Conn }

// mostWrite is what has to arrive within silent.
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
		s.Close() // and so the library connects again
		return n, fmt.Errorf("%w: %w", errCut, err)
	}
	return n, nil
}

// A dialer makes sockets.
type dialer net.Dialer

// Dial is what the client library calls.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	c, err := (*net.Dialer)(d).Dial(network, address)
	if err != nil {
		return nil, err
	}
	return socket{c}, nil
}
