package arena

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/shoal-mp/shoal/internal/arena/socket"
)

// A Token is the secret that a process needs to join by a socket.
type Token = socket.Token

// A Listener answers requests on a socket until it or its domain is closed.
type Listener = socket.Listener

// ListenOptions say where to listen.
type ListenOptions struct {
	// Path is the path of the socket. The listener also creates a lock file, Path + ".lock", and
	// never removes it. It removes a socket that a killed process has left at Path. If Path is
	// empty, the address is an abstract name, which vanishes with the process.
	Path string
}

// Serve answers [Inspect] and [Observe] at an abstract address, @shoal/<uid>/<pid>-<random>. It
// answers processes of the same user only, and never sends descriptors. The listener is closed with
// the domain, and may be closed earlier. Serving takes a socket and a goroutine, so New does not do
// it; package shoal does it in the root process of a family. The error wraps [ErrClosed] if the
// domain is closed, and [errors.ErrUnsupported] on systems other than Linux.
func (d *Domain) Serve() (*Listener, error) { return d.listenAt("", false) }

// Listen lets processes join the domain by [Join]. They must belong to the same user, have the same
// network and PID namespaces, and know the listener's token, which is new and random. The listener
// also answers [Inspect] and [Observe]. It is closed with the domain, and may be closed earlier;
// participants that have joined stay. The error wraps [errors.ErrUnsupported] if the domain is
// local or the system is not Linux, and EADDRINUSE if another process listens at opts.Path.
func (d *Domain) Listen(opts ListenOptions) (*Listener, error) {
	if d.Files() == nil {
		return nil, fmt.Errorf("listen for joins: a local domain has no files to share: %w", errors.ErrUnsupported)
	}
	return d.listenAt(opts.Path, true)
}

func (d *Domain) listenAt(path string, joins bool) (*Listener, error) {
	eye := d.newObserver()
	l, err := socket.Listen(d, socket.Options{Path: path, Joins: joins,
		Observe: func() any { return eye.Observe() }, Closed: d.listeners.remove})
	if err != nil {
		return nil, err
	}
	if !d.listeners.add(l) { // from here on, Close of the domain closes l
		return nil, errors.Join(ErrClosed, l.Close())
	}
	return l, nil
}

// Join joins the domain that listens at addr, for a process that has not inherited it. addr and
// token must come from a [Listener] that [Domain.Listen] returned. The caller must close the
// domain. The death of this process is noticed by the other participants, as for any other
// participant.
//
// Join fails when ctx ends, or after five seconds without an answer. The error wraps [ErrToken],
// [ErrUser], [ErrVersion], [ErrNamespace] or [ErrTooManyParticipants] if one of these is the
// reason.
func Join(ctx context.Context, addr string, token Token) (*Domain, error) {
	d, err := joinAddress(ctx, addr, token)
	if err != nil {
		err = fmt.Errorf("join domain at %s: %w", addr, err)
		if to, ok := ctx.Value(joinErrorKey{}).(*error); ok {
			*to = err
		}
		return nil, err
	}
	return d, nil
}

type joinErrorKey struct{}

// WithJoinError returns a context with which [Join], if it fails, also stores its error in *to.
// ipc.Dial does not return that error, because it passes values by copy if the join fails.
func WithJoinError(ctx context.Context, to *error) context.Context {
	return context.WithValue(ctx, joinErrorKey{}, to)
}

// joinAddress is Join without the context in the error.
func joinAddress(ctx context.Context, addr string, token Token) (*Domain, error) {
	files, err := socket.Join(ctx, addr, programLayout(), token)
	if err != nil {
		return nil, err
	}
	d, err := Attach(files[0], files[1])
	if err != nil {
		return nil, errors.Join(err, socket.CloseFiles(files))
	}
	return d, nil
}

// listeners is the set of a domain's listeners. Its zero value is empty. Its methods may be
// called from several goroutines.
type listeners struct {
	mu     sync.Mutex
	all    map[*Listener]bool
	closed bool
}

// add adds a listener. It returns false, and does not add l, if the set is closed; the caller
// must then close l.
func (s *listeners) add(l *Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if s.all == nil {
		s.all = make(map[*Listener]bool)
	}
	s.all[l] = true
	return true
}

// remove removes a listener. It does nothing if the listener is not in the set.
func (s *listeners) remove(l *Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, l)
}

// close closes all listeners. No listener can be added afterwards.
func (s *listeners) close() (err error) {
	s.mu.Lock()
	all := s.all
	s.all, s.closed = nil, true
	s.mu.Unlock()
	for l := range all {
		err = errors.Join(err, l.Close())
	}
	return err
}
