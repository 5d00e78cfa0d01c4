package torch

import (
	"os"
	"sync"
	"time"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/sys"
)

// Note [Giving descriptors away] A message cannot carry a descriptor, so it has an address and a
// key. The process that unpickles the message connects to a socket of the sender
// (multiprocessing.resource_sharer), authenticates itself with the sender's authkey, names the key
// and gets the descriptor. A key works once. From Python 3.14 on the receiver acknowledges and its
// sender waits for that. In older versions the receiver just closes. So our sender waits for
// either, and our receiver always acknowledges.

const (
	sharedByte = 0x01 // a byte beside the descriptor: how many there are
	ackByte    = 'A'
	// keepFor is how long a promised descriptor waits for its process.
	keepFor = 10 * time.Minute
)

// A sharer gives descriptors to the processes of one authkey.
type sharer struct {
	key       []byte
	listener  *sys.Listener
	strangers *sys.Strangers // those that have not authenticated themselves
	left      *tempDir       // of a sharer that another process has left: the directory with its address
	mu        sync.Mutex
	next      int64
	waiting   map[int64]*waiting
	giving    int              // descriptors that are being given
	ahead     map[int64]*ahead // of processes, by their first keys
}

// A waiting descriptor is the sharer's to close.
type waiting struct {
	file  *os.File
	timer *time.Timer
}

// sharers are the sharers of this process, by authkey. They stay as long as the process.
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

// address is the address of its socket in Python's form.
func (s *sharer) address() string { return "\x00" + s.listener.Addr()[1:] }

func (s *sharer) serve() {
	sys.Accept(s.listener.Accept, func(c *sys.Conn) {
		s.strangers.Enter(c, sourceOf(c))
		go s.answer(c)
	})
}

// offer takes f over, and returns the key for it.
func (s *sharer) offer(f *os.File) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	s.await(s.next, f)
	return s.next
}

// await keeps f for a key. It is called with the lock.
func (s *sharer) await(key int64, f *os.File) {
	s.waiting[key] = &waiting{f, time.AfterFunc(keepFor, func() { s.withdraw(key) })}
}

// take returns the descriptor of a key, once. The caller calls given. A sharer that another process
// has left ends with the last of its promises.
func (s *sharer) take(key int64) (*os.File, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, ok := s.waiting[key]
	if !ok {
		return s.takeAhead(key)
	}
	delete(s.waiting, key)
	w.timer.Stop()
	s.giving++
	if s.left != nil && len(s.waiting) == 0 { // before the last is given: this process may end when the other has it
		s.listener.Close()
		s.left.leave()
	}
	return w.file, true
}

// takeAhead returns a descriptor that a process has sent ahead, as take does. It is called with the
// lock, which is taken after that of an ahead.
func (s *sharer) takeAhead(key int64) (f *os.File, ok bool) {
	a := s.ahead[firstKey(key)]
	if a == nil {
		return nil, false
	}
	s.mu.Unlock()
	f, err := a.take(key)
	s.mu.Lock()
	if err != nil {
		return nil, false
	}
	s.giving++
	return f, true
}

// given closes a descriptor that take has returned.
func (s *sharer) given(f *os.File) {
	f.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.giving--
}

func (s *sharer) withdraw(key int64) {
	if f, ok := s.take(key); ok {
		s.given(f)
	}
}

// answer serves one receiver. It returns no error: on a failure the receiver finds the connection
// closed.
func (s *sharer) answer(c *sys.Conn) {
	defer c.Close()
	err := both(c)(time.Now().Add(patience))
	if err == nil {
		err = authServer(c, s.key)
	}
	s.strangers.Leave(c)
	if err != nil {
		return
	}
	request, err := readFrame(c, authLimit)
	if err != nil {
		return
	}
	key, err := requestedKey(request)
	if err != nil {
		return
	}
	f, ok := s.take(key)
	if !ok {
		return
	}
	defer s.given(f)
	if sys.SendFiles(c, []byte{sharedByte}, f) != nil {
		return
	}
	c.Read(make([]byte, 1)) // the acknowledgement, or the end
}

// requestedKey reads (key, pid).
func requestedKey(request []byte) (int64, error) {
	v, err := pickle.Unmarshal(request, nil, pickle.Limits{})
	if err != nil {
		return 0, err
	}
	pair, _ := v.(python.Tuple)
	if len(pair) != 2 {
		return 0, protocolError("a request for a descriptor is %T", v)
	}
	key, ok := pair[0].(int64)
	if !ok {
		return 0, protocolError("the key of a descriptor is %T", pair[0])
	}
	return key, nil
}
