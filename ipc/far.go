package ipc

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"github.com/shoal-mp/shoal/internal/link"
)

// schemeEnd separates the scheme of an address from the rest.
const schemeEnd = "://"

// transportFor returns the transport for an address on another machine, and the address without its
// scheme. The transport is nil for a local address. It returns [errors.ErrUnsupported] for an
// unknown scheme, and EINVAL for a host:port without a scheme.
func transportFor(addr string) (*link.Transport, string, error) {
	scheme, host, far := strings.Cut(addr, schemeEnd)
	if !far && isHostPort(addr) {
		return nil, "",
			fmt.Errorf("%q: %w: write tcp://%[1]s for another machine, or ./%[1]s for a socket file of this name",
				addr, syscall.EINVAL)
	}
	if !far || strings.ContainsAny(scheme, "/@") {
		return nil, "", nil
	}
	t, ok := link.TransportOf(scheme)
	if !ok {
		return nil, "", fmt.Errorf("%q: %w: want tcp:// before an address on another machine, "+
			"and import _ %q in the program", addr, errors.ErrUnsupported, "github.com/shoal-mp/shoal/ipc/tcp")
	}
	return &t, host, nil
}

// isHostPort reports whether addr looks like a host:port address of package net. A socket file with
// such a name in the working directory would hardly be intended.
func isHostPort(addr string) bool {
	i := strings.LastIndexByte(addr, ':')
	_, err := strconv.ParseUint(addr[i+1:], 10, 16)
	return i >= 0 && err == nil && !strings.ContainsAny(addr, "/@")
}

// listenRemote starts listening on host for other machines, by transport t, and returns when the
// socket listens. [Listener.Accept] returns the connections.
func (l *Listener[T]) listenRemote(t *link.Transport, host string) (err error) {
	l.ctx, l.end = context.WithCancel(context.Background())
	l.scheme = "tcp" + schemeEnd
	l.sock, err = t.Listen(host, l.key, l.opts.Transport, func(s link.Stream) {
		stop := context.AfterFunc(l.ctx, func() { s.Close() })
		conn, err := l.setUpAccepted(link.NewConn(s, maxValue))
		switch {
		case err != nil:
			stop()
			s.Close() // the peer sees the end of the stream
		case !stop():
			conn.Close()
		default:
			l.deliverConn(conn)
		}
	})
	if err != nil {
		l.end()
		return fmt.Errorf("listen: %w", err)
	}
	return nil
}
