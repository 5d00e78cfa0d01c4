package arena

import (
	"crypto/subtle"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
)

// Note [Sockets] A client sends one request of 32 bytes: "shoal", the kind of request ('I' inspect,
// 'O' observe, 'J' join), version in two bytes, layout hash and token (both zero unless the request
// is 'J'). The answer to 'I' is a Report in JSON, and the one to 'O' is an Observation; both end
// with the stream. Programs before version 11 may close without an answer to 'O'. The answer to 'J'
// has 32 bytes; if its status is 0, the control file and the data file are attached. These forms
// must stay the same in all versions, so that programs of two versions can report which versions
// have met.
//
// A connection of another user is refused before anything is read from it. Each connection has a
// deadline. If too many connections are open, the oldest one of the user with the most is closed.
// So silent clients cannot keep others out.
const (
	requestSize   = 32
	answerSize    = 32
	wantInspect   = 'I'
	wantObserve   = 'O'
	wantJoin      = 'J'
	handshakeTime = 5 * time.Second
	reportAge     = 100 * time.Millisecond // an answer is not computed more often
)

// Status codes of an answer.
const (
	statusOK = iota
	statusToken
	statusVersion
	statusUser
	statusInspectOnly
)

// A Token is the secret that a process needs to join by a socket.
type Token [16]byte

// A Listener answers requests on a socket until it or its domain is closed.
type Listener struct {
	d     *Domain
	sock  *sys.Listener
	lock  *os.File // locked while the socket at a path is ours; nil for an abstract address
	token Token
	joins bool
	uid   int
	done  sync.WaitGroup

	conns *sys.Strangers

	mu     sync.Mutex
	closed bool
	report recent
	seen   recent
	eye    observer
}

// A recent is an answer that is cached for other clients.
type recent struct {
	text []byte
	made time.Time
}

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
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("listen on an abstract socket: %w", errors.ErrUnsupported)
	}
	l := &Listener{d: d, joins: joins, uid: os.Getuid(), conns: sys.NewStrangers(sys.MostStrangers),
		eye: observer{d: d}}
	if joins {
		if err := sys.Random(l.token[:]); err != nil {
			return nil, fmt.Errorf("create token: %w", err)
		}
	}
	if err := l.bindSocket(path); err != nil {
		return nil, fmt.Errorf("listen for domain: %w", err)
	}
	l.done.Go(func() { sys.Accept(l.sock.Accept, l.startServing) })
	if !d.listeners.add(l) { // from here on, Close of the domain closes l
		return nil, errors.Join(ErrClosed, l.closeListener())
	}
	return l, nil
}

// bindSocket creates the socket at path, or at a new abstract address if path is empty.
func (l *Listener) bindSocket(path string) (err error) {
	if path == "" {
		path, err = socketName(l.joins)
	} else {
		l.lock, err = claimPath(path)
	}
	if err != nil {
		return err
	}
	l.sock, err = sys.Listen(path)
	if err != nil && l.lock != nil {
		err = errors.Join(err, l.lock.Close())
	}
	return err
}

// joinSuffix ends the abstract addresses that are for joining, so that [Domains] can leave them
// out.
const joinSuffix = "-join"

// socketName returns a new random abstract address.
func socketName(joins bool) (string, error) {
	var r [8]byte
	if err := sys.Random(r[:]); err != nil {
		return "", err
	}
	name := fmt.Sprintf("@shoal/%d/%d-%x", os.Getuid(), os.Getpid(), r)
	if joins {
		name += joinSuffix
	}
	return name, nil
}

// claimPath locks the lock file of a socket's path and removes the socket that a dead listener has
// left there. The caller must close the file to unlock it. The error wraps EADDRINUSE if another
// process has the lock.
func claimPath(path string) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Clean(path)+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	ok, err := sys.LockByte(lock, 0)
	if err == nil && !ok {
		err = fmt.Errorf("%s: %w: another process listens there", path, syscall.EADDRINUSE)
	}
	if err == nil {
		err = removeSocket(path)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// removeSocket removes the socket at path, if there is one. It returns an error if path is another
// kind of file.
func removeSocket(path string) error {
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s: %w and is not a socket: choose another path", path, fs.ErrExist)
	}
	return os.Remove(path)
}

// Addr returns the address for [Join], [Inspect] and [Observe]: "@" and a name, or a path.
func (l *Listener) Addr() string { return l.sock.Addr() }

// Token returns the secret that [Join] needs. It is zero if the listener came from [Domain.Serve].
func (l *Listener) Token() Token { return l.token }

// Close closes the listener and its connections, and waits for the goroutines that serve them. It
// is idempotent.
func (l *Listener) Close() error {
	l.d.listeners.remove(l)
	return l.closeListener()
}

// closeListener does the work of Close, except that the listener stays in its domain's set.
func (l *Listener) closeListener() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	err := l.sock.Close()
	l.mu.Unlock()
	l.conns.Close()
	l.done.Wait()
	if l.lock != nil {
		err = errors.Join(err, l.lock.Close())
	}
	return err
}

// startServing serves a connection in a goroutine. It takes ownership of c.
func (l *Listener) startServing(c *sys.Conn) {
	uid, _, err := sys.PeerUID(c)
	if err != nil {
		c.Close()
		return
	}
	l.conns.Enter(c, uid)
	l.done.Go(func() {
		l.serveConn(c, uid)
		l.conns.Leave(c)
		c.Close()
	})
}

// serveConn serves one connection. If it fails, the client sees the end of the stream.
func (l *Listener) serveConn(c *sys.Conn, uid int) {
	c.SetDeadline(time.Now().Add(handshakeTime))
	if uid != l.servedUser() {
		c.Write(encodeAnswer(statusUser))
		return
	}
	var req [requestSize]byte
	if _, err := io.ReadFull(c, req[:]); err != nil || string(req[:5]) != "shoal" {
		return
	}
	switch req[5] {
	case wantInspect:
		l.sendReport(c, &l.report, func() any { return l.d.Report() })
	case wantObserve:
		l.sendReport(c, &l.seen, func() any { return l.eye.observe() })
	case wantJoin:
		l.answerJoin(c, req)
	}
}

// servedUser returns the ID of the user that is served. Tests change it.
func (l *Listener) servedUser() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.uid
}

// answerJoin answers a join. It sends the domain's files only to a client that knows the token and
// has the same version and layout.
func (l *Listener) answerJoin(c *sys.Conn, req [requestSize]byte) {
	status := byte(statusOK)
	switch {
	case !l.joins:
		status = statusInspectOnly
	case subtle.ConstantTimeCompare(req[16:], l.token[:]) != 1:
		status = statusToken
	case req != encodeRequest(wantJoin, l.token):
		status = statusVersion
	}
	if status != statusOK {
		c.Write(encodeAnswer(status))
		return
	}
	sys.SendFiles(c, encodeAnswer(statusOK), l.d.Files()...)
}

// sendReport sends the result of makeReport in JSON. Results are cached in last for [reportAge],
// because makeReport reads every block header.
func (l *Listener) sendReport(c *sys.Conn, last *recent, makeReport func() any) {
	if b, err := l.cachedReport(last, makeReport); err == nil {
		c.Write(b)
	}
}

// cachedReport returns the cached result of makeReport in JSON, or a new one if it is too old.
func (l *Listener) cachedReport(last *recent, makeReport func() any) (b []byte, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last.text == nil || time.Since(last.made) >= reportAge {
		if b, err = json.Marshal(makeReport()); err != nil {
			return nil, err
		}
		*last = recent{b, time.Now()}
	}
	return last.text, nil
}

// encodeRequest encodes a request. See Note [Sockets].
func encodeRequest(want byte, token Token) (req [requestSize]byte) {
	copy(req[:], "shoal")
	req[5] = want
	binary.LittleEndian.PutUint16(req[6:], protocolVersion)
	if want == wantJoin {
		binary.LittleEndian.PutUint64(req[8:], layoutHash())
		copy(req[16:], token[:])
	}
	return req
}

// encodeAnswer encodes an answer to a join: status 1, zeroes 3, version 4, layout hash 8, network
// namespace 8, PID namespace 8 bytes.
func encodeAnswer(status byte) []byte {
	b := make([]byte, answerSize)
	b[0] = status
	binary.LittleEndian.PutUint32(b[4:], protocolVersion)
	binary.LittleEndian.PutUint64(b[8:], layoutHash())
	binary.LittleEndian.PutUint64(b[16:], namespaceID("net"))
	binary.LittleEndian.PutUint64(b[24:], namespaceID("pid"))
	return b
}

// namespaceID returns the number of one of this process's namespaces, or 0 if it cannot be read.
func namespaceID(kind string) uint64 { return sys.Namespace(kind) }

// listeners is the set of a domain's listeners.
type listeners struct {
	mu     sync.Mutex
	all    map[*Listener]bool
	closed bool
}

// add adds a listener. It reports false if the set is closed.
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
		err = errors.Join(err, l.closeListener())
	}
	return err
}
