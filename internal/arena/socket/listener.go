package socket

import (
	"crypto/subtle"
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
	"github.com/shoal-mp/shoal/shm"
)

// A Domain is the domain that a [Listener] serves. Its methods may be called from several
// goroutines.
type Domain interface {
	// Files returns the control file and the data file, or nil if no process can join.
	Files() []*os.File
	// Report returns the answer to an inspection, which is sent as JSON.
	Report() shm.Report
	// Layout returns the layout of the files.
	Layout() Layout
}

// A Listener answers requests on a socket until it is closed. Its methods may be called from
// several goroutines.
type Listener struct {
	d     Domain
	opts  Options
	sock  *sys.Listener
	lock  *os.File // locked while the socket at a path is ours; nil for an abstract address
	token Token
	uid   int
	done  sync.WaitGroup

	conns *sys.Strangers

	mu     sync.Mutex
	closed bool
	report recent
	seen   recent
}

// A recent is an answer that is cached for other clients.
type recent struct {
	text []byte
	made time.Time
}

// Options configure [Listen].
type Options struct {
	// Path is the path of the socket. The listener also creates a lock file, Path + ".lock", and
	// never removes it. It removes a socket that a killed process has left at Path. If Path is
	// empty, the address is an abstract name, which vanishes with the process.
	Path string
	// Joins lets processes join by [Join]. Otherwise the listener never sends descriptors.
	Joins bool
	// Observe returns the answer to an observation, which is sent as JSON. Calls do not overlap.
	Observe func() any
	// Closed is called when the listener is closed, if it is not nil.
	Closed func(*Listener)
}

// Listen serves d until the listener is closed, which the caller must do. The error wraps
// [errors.ErrUnsupported] on systems other than Linux, and EADDRINUSE if another process listens
// at opts.Path.
func Listen(d Domain, opts Options) (*Listener, error) {
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("listen on an abstract socket: %w", errors.ErrUnsupported)
	}
	l := &Listener{d: d, opts: opts, uid: os.Getuid(), conns: sys.NewStrangers(sys.MostStrangers)}
	if opts.Joins {
		if err := sys.Random(l.token[:]); err != nil {
			return nil, fmt.Errorf("create token: %w", err)
		}
	}
	if err := l.bindSocket(opts.Path); err != nil {
		return nil, fmt.Errorf("listen for domain: %w", err)
	}
	l.done.Go(func() { sys.Accept(l.sock.Accept, l.startServing) })
	return l, nil
}

// bindSocket creates the socket at path, or at a new abstract address if path is empty.
func (l *Listener) bindSocket(path string) (err error) {
	if path == "" {
		path, err = socketName(l.opts.Joins)
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

// joinSuffix ends the abstract addresses that are for joining, so that [Addresses] can leave them
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

// Addr returns the address for [Join] and [Request]: "@" and a name, or a path.
func (l *Listener) Addr() string { return l.sock.Addr() }

// Token returns the secret that [Join] needs. It is zero without Options.Joins.
func (l *Listener) Token() Token { return l.token }

// Close closes the listener and its connections, and waits for the goroutines that serve them. It
// is idempotent.
func (l *Listener) Close() error {
	if l.opts.Closed != nil {
		l.opts.Closed(l)
	}
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

// serveConn serves one connection of a process of user uid. The caller must close c afterwards, so
// that the client of a failed call sees the end of the stream.
func (l *Listener) serveConn(c *sys.Conn, uid int) {
	c.SetDeadline(time.Now().Add(handshakeTime))
	if uid != l.servedUser() {
		c.Write(EncodeAnswer(statusUser, l.d.Layout()))
		return
	}
	var req [requestSize]byte
	if _, err := io.ReadFull(c, req[:]); err != nil || string(req[:5]) != "shoal" {
		return
	}
	switch req[5] {
	case WantInspect:
		l.sendReport(c, &l.report, func() any { return l.d.Report() })
	case WantObserve:
		l.sendReport(c, &l.seen, l.opts.Observe)
	case WantJoin:
		l.answerJoin(c, req)
	}
}

// ServeUser changes the user that is served. The default is the user of this process. Only tests
// may call it.
func (l *Listener) ServeUser(uid int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.uid = uid
}

// servedUser returns the ID of the user that is served.
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
	case !l.opts.Joins:
		status = statusInspectOnly
	case subtle.ConstantTimeCompare(req[16:], l.token[:]) != 1:
		status = statusToken
	case req != EncodeRequest(WantJoin, l.d.Layout(), l.token):
		status = statusVersion
	}
	if status != statusOK {
		c.Write(EncodeAnswer(status, l.d.Layout()))
		return
	}
	sys.SendFiles(c, EncodeAnswer(statusOK, l.d.Layout()), l.d.Files()...)
}

// sendReport sends the result of makeReport in JSON. Results are cached in last for [reportAge],
// because makeReport reads every block header.
func (l *Listener) sendReport(c *sys.Conn, last *recent, makeReport func() any) {
	if b, err := l.cachedReport(last, makeReport); err == nil {
		c.Write(b)
	}
}

// cachedReport returns the cached result of makeReport in JSON, or a new one if it is too old. It
// may be called from several goroutines; calls of makeReport do not overlap.
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
