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

// Note [Sockets] A client says one request of 32 bytes: "shoal", what it wants ('I' inspect, 'O'
// observe, 'J' join), two bytes version, the layout hash and the token (both zero but to join). The
// answer to 'I' is a Report in JSON and the end of the stream, that to 'O' an Observation. Programs
// before version 11 may close without an answer to 'O'. The answer to 'J' is an answer of 32
// bytes, with the control and the data file attached when its status is 0. The forms are those of
// all versions, so that programs of two versions can tell each other which ones they are.
//
// The listener closes a connection of another user before it reads anything. Each connection has a
// deadline. When too many are open, the listener closes the oldest one of the user who has the
// most. So a client that connects and says nothing keeps nobody out.
const (
	requestSize   = 32
	answerSize    = 32
	wantInspect   = 'I'
	wantObserve   = 'O'
	wantJoin      = 'J'
	handshakeTime = 5 * time.Second
	reportAge     = 100 * time.Millisecond // an answer is not made more often
)

// Status of an answer.
const (
	statusOK = iota
	statusToken
	statusVersion
	statusUser
	statusInspectOnly
)

// A Token is the secret that lets a process join by a socket.
type Token [16]byte

// A Listener answers on a socket, until it or its domain is closed.
type Listener struct {
	d     *Domain
	sock  *sys.Listener
	lock  *os.File // held while a path socket is ours
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

// recent is an answer that others may have as well.
type recent struct {
	text []byte
	made time.Time
}

// ListenOptions say where to listen.
type ListenOptions struct {
	// Path is a socket in the file system. A lock file beside it, Path + ".lock", stays. The
	// listener removes the socket that a killed process has left at Path. Empty means an abstract
	// address, which ends with the process.
	Path string
}

// Serve answers [Inspect] on an abstract socket, @shoal/<uid>/<pid>-<random>: to processes of the
// same user, statistics and never descriptors. It costs a socket and a goroutine, so New does not
// do it; package shoal does in the root of a family. The listener is closed with the domain at the
// latest.
func (d *Domain) Serve() (*Listener, error) { return d.listen("", false) }

// Listen lets processes of the same user, and of the same network and PID namespace, join the
// domain by [Join] if they know the listener's token, which is new and random. It also answers
// [Inspect]. The listener is closed with the domain at the latest; participants that have joined
// stay.
func (d *Domain) Listen(opts ListenOptions) (*Listener, error) {
	if d.Files() == nil {
		return nil, fmt.Errorf("listen for joins: a local domain has no files to share: %w", errors.ErrUnsupported)
	}
	return d.listen(opts.Path, true)
}

func (d *Domain) listen(path string, joins bool) (*Listener, error) {
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("listen on an abstract socket: %w", errors.ErrUnsupported)
	}
	l := &Listener{d: d, joins: joins, uid: os.Getuid(), conns: sys.NewStrangers(sys.MostStrangers),
		eye: observer{d: d}}
	if joins {
		if err := sys.Random(l.token[:]); err != nil {
			return nil, fmt.Errorf("make a token: %w", err)
		}
	}
	if err := l.bind(path); err != nil {
		return nil, fmt.Errorf("listen for domain: %w", err)
	}
	l.done.Go(func() { sys.Accept(l.sock.Accept, l.meet) })
	if !d.listeners.add(l) { // from here on the domain's Close may wait for what goes on
		return nil, errors.Join(ErrClosed, l.shut())
	}
	return l, nil
}

func (l *Listener) bind(path string) (err error) {
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

const joinSuffix = "-join"

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

// claimPath takes the lock of a path socket and removes what a dead listener has left there.
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

func removeSocket(path string) error {
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s: %w, and is no socket; choose another path", path, fs.ErrExist)
	}
	return os.Remove(path)
}

// Addr returns the address for [Join] and [Inspect]: @ and a name, or a path.
func (l *Listener) Addr() string { return l.sock.Addr() }

// Token returns the secret that [Join] needs; it is zero where the listener only answers
// inspection.
func (l *Listener) Token() Token { return l.token }

// Close ends the listener and waits for the answers that are under way. It is idempotent.
func (l *Listener) Close() error {
	l.d.listeners.remove(l)
	return l.shut()
}

func (l *Listener) shut() error {
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

// meet begins to serve a connection.
func (l *Listener) meet(c *sys.Conn) {
	uid, _, err := sys.PeerUID(c)
	if err != nil {
		c.Close()
		return
	}
	l.conns.Enter(c, uid)
	l.done.Go(func() {
		l.answer(c, uid)
		l.conns.Leave(c)
		c.Close()
	})
}

// answer serves one connection. After an error the client sees the stream end.
func (l *Listener) answer(c *sys.Conn, uid int) {
	c.SetDeadline(time.Now().Add(handshakeTime))
	if uid != l.user() {
		c.Write(answerOf(statusUser))
		return
	}
	var req [requestSize]byte
	if _, err := io.ReadFull(c, req[:]); err != nil || string(req[:5]) != "shoal" {
		return
	}
	switch req[5] {
	case wantInspect:
		l.tell(c, &l.report, func() any { return l.d.Report() })
	case wantObserve:
		l.tell(c, &l.seen, func() any { return l.eye.look() })
	case wantJoin:
		l.admit(c, req)
	}
}

func (l *Listener) user() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.uid
}

// admit gives the domain's files to a client that knows the token and has the same layout.
func (l *Listener) admit(c *sys.Conn, req [requestSize]byte) {
	status := byte(statusOK)
	switch {
	case !l.joins:
		status = statusInspectOnly
	case subtle.ConstantTimeCompare(req[16:], l.token[:]) != 1:
		status = statusToken
	case req != requestOf(wantJoin, l.token):
		status = statusVersion
	}
	if status != statusOK {
		c.Write(answerOf(status))
		return
	}
	sys.SendFiles(c, answerOf(statusOK), l.d.Files()...)
}

// tell writes in JSON what look returns. It looks once each reportAge at most, since that reads
// every block.
func (l *Listener) tell(c *sys.Conn, last *recent, look func() any) {
	if b, err := l.recently(last, look); err == nil {
		c.Write(b)
	}
}

func (l *Listener) recently(last *recent, look func() any) (b []byte, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last.text == nil || time.Since(last.made) >= reportAge {
		if b, err = json.Marshal(look()); err != nil {
			return nil, err
		}
		*last = recent{b, time.Now()}
	}
	return last.text, nil
}

func requestOf(want byte, token Token) (req [requestSize]byte) {
	copy(req[:], "shoal")
	req[5] = want
	binary.LittleEndian.PutUint16(req[6:], protocolVersion)
	if want == wantJoin {
		binary.LittleEndian.PutUint64(req[8:], layoutHash())
		copy(req[16:], token[:])
	}
	return req
}

// answerOf is: status 1, 0 3, version 4, layout hash 8, network namespace 8, PID namespace 8.
func answerOf(status byte) []byte {
	b := make([]byte, answerSize)
	b[0] = status
	binary.LittleEndian.PutUint32(b[4:], protocolVersion)
	binary.LittleEndian.PutUint64(b[8:], layoutHash())
	binary.LittleEndian.PutUint64(b[16:], namespace("net"))
	binary.LittleEndian.PutUint64(b[24:], namespace("pid"))
	return b
}

// namespace returns the number of one of this process's namespaces, or 0.
func namespace(kind string) uint64 { return sys.Namespace(kind) }

// listeners are the listeners of a domain.
type listeners struct {
	mu     sync.Mutex
	all    map[*Listener]bool
	closed bool
}

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

func (s *listeners) remove(l *Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, l)
}

// close ends all of them; no more can be added.
func (s *listeners) close() (err error) {
	s.mu.Lock()
	all := s.all
	s.all, s.closed = nil, true
	s.mu.Unlock()
	for l := range all {
		err = errors.Join(err, l.shut())
	}
	return err
}
