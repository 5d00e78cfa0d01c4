package torch

import (
	"os"
	"sync"
	"time"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/sys"
)

// Note [Giving descriptors away] A pickle cannot carry a descriptor, so it carries an address and a
// key. The process that unpickles it connects to a socket of the sender, which
// multiprocessing.resource_sharer serves, authenticates itself with the sender's authkey, sends the
// key and receives the descriptor. A key is valid once. Since Python 3.14 the receiver acknowledges
// the descriptor and the sender waits for that; an older receiver just closes the connection. Our
// sender therefore waits for either, and our receiver always acknowledges. See
// https://github.com/python/cpython/blob/v3.13.0/Lib/multiprocessing/resource_sharer.py and
// send_handle and recv_handle in
// https://github.com/python/cpython/blob/v3.13.0/Lib/multiprocessing/reduction.py.

const (
	sharedByte = 0x01 // accompanies a descriptor: the number of descriptors
	ackByte    = 'A'
	// keepFor is how long a resource sharer keeps a descriptor that is not fetched.
	keepFor = 10 * time.Minute
)

// A sharer is the counterpart of multiprocessing.resource_sharer for one authkey: it passes
// descriptors to processes that know the key. sharerFor returns the one for a key, and
// handover.serve makes one for descriptors of an ended process. Its methods may be called from
// several goroutines.
type sharer struct {
	key       []byte
	listener  *sys.Listener
	strangers *sys.Strangers // connections that are not authenticated yet
	left      *tempDir       // of a sharer handed over by another process: the directory of its socket; else nil
	mu        sync.Mutex
	next      int64
	waiting   map[int64]*waiting
	giving    int              // descriptors that are being sent
	ahead     map[int64]*ahead // receivers of descriptors sent ahead, by their first keys
}

// A waiting is a descriptor that is not fetched yet. The sharer owns it, and closes it when the
// timer expires.
type waiting struct {
	file  *os.File
	timer *time.Timer
}

// sharers holds the resource sharers of this process by authkey. They are never removed.
var sharers = struct {
	sync.Mutex
	byKey map[string]*sharer
}{byKey: map[string]*sharer{}}

func sharerFor(key []byte) (*sharer, error) {
	if len(key) == 0 {
		return nil, ErrNoKey
	}
	sharers.Lock()
	defer sharers.Unlock()
	if s := sharers.byKey[string(key)]; s != nil {
		return s, nil
	}
	l, err := sys.Listen(abstractName())
	if err != nil {
		return nil, err
	}
	s := &sharer{key: append([]byte(nil), key...), listener: l, strangers: sys.NewStrangers(sys.MostStrangers),
		waiting: map[int64]*waiting{}, ahead: map[int64]*ahead{}}
	sharers.byKey[string(key)] = s
	go s.serve()
	return s, nil
}

// address returns the address of the sharer in Python's form.
func (s *sharer) address() string { return "\x00" + s.listener.Addr()[1:] }

func (s *sharer) serve() {
	sys.Accept(s.listener.Accept, func(c *sys.Conn) {
		s.strangers.Enter(c, sourceOf(c))
		go s.serveReceiver(c)
	})
}

// addDescriptor takes ownership of f and returns its key. One process can fetch f by the key.
// The sharer closes f after keepFor, 10 minutes, if it was not fetched.
func (s *sharer) addDescriptor(f *os.File) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	s.keepDescriptor(s.next, f)
	return s.next
}

// keepDescriptor takes ownership of f, offers it under key, and closes it after keepFor. The
// caller must hold s.mu.
func (s *sharer) keepDescriptor(key int64, f *os.File) {
	s.waiting[key] = &waiting{f, time.AfterFunc(keepFor, func() { s.withdrawKey(key) })}
}

// takeDescriptor removes and returns the descriptor with the given key, and false if there is
// none. The caller must pass the descriptor to closeGiven afterwards. A sharer that was handed
// over by another process ends when its last descriptor is taken.
func (s *sharer) takeDescriptor(key int64) (*os.File, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, ok := s.waiting[key]
	if !ok {
		return s.takeSentAhead(key)
	}
	delete(s.waiting, key)
	w.timer.Stop()
	s.giving++
	if s.left != nil && len(s.waiting) == 0 { // before the send, which may end this process
		s.listener.Close()
		s.left.release()
	}
	return w.file, true
}

// takeSentAhead returns the descriptor with the given key that was sent ahead. ok is false if
// there is none. The caller must hold s.mu. It is released meanwhile, because the lock order is
// ahead.mu before s.mu.
func (s *sharer) takeSentAhead(key int64) (f *os.File, ok bool) {
	a := s.ahead[firstKey(key)]
	if a == nil {
		return nil, false
	}
	s.mu.Unlock()
	f, err := a.takeDescriptor(key)
	s.mu.Lock()
	if err != nil {
		return nil, false
	}
	s.giving++
	return f, true
}

// closeGiven closes a descriptor that takeDescriptor returned.
func (s *sharer) closeGiven(f *os.File) {
	f.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.giving--
}

func (s *sharer) withdrawKey(key int64) {
	if f, ok := s.takeDescriptor(key); ok {
		s.closeGiven(f)
	}
}

// serveReceiver sends one receiver the descriptor that it requests, and closes c. On any failure
// it only closes the connection, which is how the receiver learns of it.
func (s *sharer) serveReceiver(c *sys.Conn) {
	defer c.Close()
	err := setBothDeadlines(c)(time.Now().Add(patience))
	if err == nil {
		err = authServer(c, s.key)
	}
	s.strangers.Leave(c)
	if err != nil {
		return
	}
	request, err := nextFrame(c, authLimit)
	if err != nil {
		return
	}
	key, err := decodeKeyRequest(request)
	if err != nil {
		return
	}
	f, ok := s.takeDescriptor(key)
	if !ok {
		return
	}
	defer s.closeGiven(f)
	if sys.SendFiles(c, []byte{sharedByte}, f) != nil {
		return
	}
	c.Read(make([]byte, 1)) // the acknowledgement, or EOF
}

// decodeKeyRequest decodes a receiver's request (key, pid) and returns the key. It returns an
// error if the request is malformed.
func decodeKeyRequest(request []byte) (int64, error) {
	v, err := pickle.Unmarshal(request, nil, pickle.Limits{})
	if err != nil {
		return 0, err
	}
	pair, _ := v.(python.Tuple)
	if len(pair) != 2 {
		return 0, protocolError("request for a descriptor is %T, want a pair", v)
	}
	key, ok := pair[0].(int64)
	if !ok {
		return 0, protocolError("key of a descriptor is %T, want an int", pair[0])
	}
	return key, nil
}
