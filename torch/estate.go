package torch

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/pickle/value"
	"github.com/shoal-mp/shoal/internal/sys"
)

// Note [What a process leaves] A tensor that Python sends is in the memory of its process until it
// is received. Descriptors wait in the process's sharer (Note [Giving descriptors away]). PyTorch's
// manager removes names when the last process that is connected to it has ended. An ordinary
// function sends its result and returns, so the result would go with its process.
//
// So a process that this one has started leaves descriptors and names to this one. Spawn puts the
// text of leave.py into the data that it gives the process, and Python runs it before anything
// else. leave.py imports nothing. It acts when the function has returned, raised or exited, when
// multiprocessing has run its finalizers, which write the messages of queues, and when the threads
// of the process have ended. It then ends the thread that serves descriptors, after the requests
// that the thread has got, and sends over a socket of its own:
//
//	the sharer's listening socket, with its address and key, and each descriptor by its number;
//	the connections to PyTorch's managers, with the names that it has given, and how often each is mapped there.
//
// Then this process answers and the other one ends. A receiver sees no difference, in whatever
// process it is and by whatever way the message came. The address is the same, and a client that
// connects meanwhile waits in the socket's queue. Nothing is polled and no message has to be read.
// So a program may wait for the process before it receives, or not receive at all.
//
// This process has the directory of the sharer's socket from the start (tempDir), because a killed
// process tidies nothing up. Either process may be killed or stopped at any line of leave.py. This
// process serves the parts that it has read whole, and keeps nothing of the rest.
//
// Two other ways do not work. If Python waited until all is fetched, Go would have to receive, and
// Wait before Recv would hang. Fetching as messages arrive is possible for one connection, but not
// for a queue that other processes read as well.
//
// The count of a named file has one for each mapping and one for each message. The process says how
// many mappings it has, and ours are known, so the rest are messages. This process lets the
// managers go when as many messages have come and their memory is not in use here.

//go:embed leave.py
var leaveCode string

// linger is how long a process that ends may wait until this one has taken over.
const linger = time.Minute

// inherit takes over the descriptors and names that the process leaves.
func (p *Process) inherit(c *sys.Conn) {
	defer c.Close()
	defer p.dir.leave()
	in := &catcher{conn: c}
	defer in.drop()
	if _, err := io.ReadFull(in, make([]byte, 1)); err != nil {
		return // the process was killed
	}
	close(p.ending)
	w, err := readWill(in)
	if errors.Is(err, io.EOF) {
		return // nothing is left
	}
	if err == nil {
		err = w.execute(in, p.dir)
	}
	answer := []byte{ackByte}
	if err != nil {
		answer = []byte(err.Error())
	}
	c.Write(answer)
}

// A will lists the descriptors and names that a process leaves.
type will struct {
	_        struct{} `torch:",tuple"`
	Address  string   // of the sharer, or ""
	Key      []byte   // its authkey
	Keys     []int64  // keys of descriptors
	Names    []mapped
	Managers int // how many connections
}

// A mapped name is a name of PyTorch's memory.
type mapped struct {
	_     struct{} `torch:",tuple"`
	Name  string
	Count int // mappings in the process that ends
}

// maxWill bounds the bytes of a will: it has room for as many descriptors as a process may have,
// and for names.
const maxWill = 64 << 20

func readWill(in io.Reader) (w will, err error) {
	b, err := readFrame(in, maxWill)
	if err != nil {
		return w, err
	}
	tree, err := pickle.Unmarshal(b, nil, pickle.Limits{Bytes: maxWill})
	if err != nil {
		return w, err
	}
	v, err := new(value.Lifter).Lift(tree)
	if err != nil {
		return w, err
	}
	if err := assign(&w, v); err != nil {
		return w, err
	}
	if w.Managers < 0 || w.Managers > len(w.Keys)+1024 {
		return w, protocolError("%d managers are left", w.Managers)
	}
	if w.Address == "" && len(w.Keys) > 0 {
		return w, protocolError("%d descriptors are left without an address", len(w.Keys))
	}
	return w, nil
}

// execute takes the files that come with a will.
func (w will) execute(in *catcher, dir *tempDir) error {
	n := len(w.Keys) + w.Managers
	if w.Address != "" {
		n++
	}
	files, err := in.take(n)
	if err != nil {
		return err
	}
	if w.Managers > 0 {
		regions.keepNames(w.Names, files[n-w.Managers:])
	}
	if w.Address == "" {
		return nil
	}
	return w.serve(files[0], files[1:1+len(w.Keys)], dir)
}

// take reads n bytes with a file each.
func (k *catcher) take(n int) (files []*os.File, err error) {
	for range n {
		if _, err := io.ReadFull(k, make([]byte, 1)); err != nil {
			return nil, err
		}
	}
	if len(k.files) != n {
		return nil, protocolError("%d files are left where %d were told", len(k.files), n)
	}
	files, k.files = k.files, nil
	return files, nil
}

// serve gives the descriptors away at the address of the process that has promised them.
func (w will) serve(socket *os.File, files []*os.File, dir *tempDir) error {
	addr, err := fromPython(w.Address)
	if err != nil {
		return err
	}
	l, err := sys.ListenerOn(socket, addr)
	if err != nil {
		closeFiles(files)
		return err
	}
	dir.enter() // for the sharer, whose address is there
	s := &sharer{key: w.Key, listener: l, strangers: sys.NewStrangers(sys.MostStrangers),
		waiting: map[int64]*waiting{}, left: dir}
	s.mu.Lock()
	for i, key := range w.Keys {
		s.await(key, files[i])
	}
	s.mu.Unlock()
	go s.serve()
	return nil
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// keptNames are names of PyTorch's memory in messages that its process has left. The names exist
// while a process is connected to their managers.
type keptNames struct {
	managers []*os.File
	coming   map[string]int // messages to come
	until    time.Time
}

// keepNames takes the connections over.
func (t *regionTable) keepNames(names []mapped, managers []*os.File) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := &keptNames{managers, map[string]int{}, time.Now().Add(keepFor)}
	for _, n := range names {
		name := "/" + n.Name
		coming := countOf(name) - n.Count
		if t.hasName(name) {
			coming--
		}
		k.coming[name] = coming
	}
	t.kept = append(t.kept, k)
	t.letGoIn(k, tidyFirst)
}

// countOf reads how many mappings and messages have a named file. It returns 0 if there is no such
// file.
func countOf(name string) int {
	f, err := openNamed(name)
	if err != nil {
		return 0
	}
	defer f.Close()
	return countIn(f)
}

func countIn(f *os.File) int {
	var b [4]byte
	if _, err := f.ReadAt(b[:], 0); err != nil {
		return 0
	}
	return int(int32(binary.NativeEndian.Uint32(b[:])))
}

// removeUnfinished removes the names in /dev/shm that an ended process of PyTorch's had no time to
// remove. Under file_descriptor PyTorch makes a file torch_PID_RANDOM_NUMBER, sets its size, maps
// it and unlinks it. A process that is killed between, or finds no room, leaves the name for ever.
// Nobody has such a file open, and its count is 0. A file of file_system has a count, and PyTorch's
// manager removes it.
func removeUnfinished(pid int) {
	paths, err := filepath.Glob(filepath.Join(shmDir, fmt.Sprintf("torch_%d_*", pid)))
	if err != nil {
		return
	}
	for _, path := range paths {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if elsewhere, err := sys.OpenElsewhere(f); err == nil && !elsewhere && countIn(f) == 0 {
			os.Remove(path)
		}
		f.Close()
	}
}

func (t *regionTable) hasName(name string) bool {
	for _, r := range t.byID {
		if r.name == name {
			return true
		}
	}
	return false
}

// came notes that a message with a name has come.
func (t *regionTable) came(name string) {
	for _, k := range t.kept {
		if k.coming[name] > 0 {
			k.coming[name]--
		}
	}
}

// letGoIn looks after a pause whether the names are needed, and repeats that until they are not.
func (t *regionTable) letGoIn(k *keptNames, pause time.Duration) {
	time.AfterFunc(pause, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		for name, coming := range k.coming {
			_, err := os.Stat(shmDir + name)
			wanted := coming > 0 && time.Now().Before(k.until)
			if err != nil || !wanted && !t.hasName(name) {
				delete(k.coming, name)
			}
		}
		if len(k.coming) > 0 {
			t.letGoIn(k, min(2*pause, tidyLast))
			return
		}
		closeFiles(k.managers)
		t.kept = slices.DeleteFunc(t.kept, func(other *keptNames) bool { return other == k })
	})
}
