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

// Note [What a process leaves] A tensor that Python sends remains in the memory of the sender until
// it is received: descriptors wait in the sender's resource sharer (Note [Giving descriptors
// away]), and PyTorch's shared-memory manager removes names when the last process connected to it
// ends. A typical function sends its result and returns, so the result would be lost with its
// process.
//
// A process started by [Spawn] therefore hands its descriptors and names over to this one before it
// ends. Spawn injects leave.py, which Python runs before anything else and which imports nothing.
// leave.py acts after the function has returned, raised or exited, after the finalizers of
// multiprocessing have run, which write the messages of queues, and after the threads of the
// process have ended. It stops the thread that serves descriptors, after the requests that the
// thread has accepted, and sends over a separate socket:
//
//	the sharer's listening socket, with its address and key, and each descriptor by its number;
//	the connections to PyTorch's managers, with the names that it has given, and how often each is mapped there.
//
// When this process has acknowledged the handover, the other one ends. Receivers, in any process,
// see no difference: the address of the resource sharer stays the same, and a client that connects
// meanwhile waits in the backlog of the socket. Nothing is polled and no message has to be read, so
// a program may wait for the process before it receives, or not receive at all.
//
// This process creates the directory of the sharer's socket (tempDir), because a killed process
// cannot remove it. Either process may be killed or stopped at any line of leave.py. This process
// serves the parts that it has read completely and discards the rest.
//
// Two alternatives do not work. If Python waited until everything is fetched, a program that calls
// Wait before Recv would deadlock. And fetching descriptors as messages arrive is possible for one
// connection, but not for a queue that other processes read as well.
//
// The reference count of a named file includes one for each mapping and one for each message. The
// ending process reports its number of mappings, and this process knows its own, so the remainder
// is the number of messages. This process closes the connections to the managers when that many
// messages have been received and their memory is no longer in use here.

//go:embed leave.py
var leaveCode string

// linger is the default for how long an ending process waits for the handover.
const linger = time.Minute

// inheritHandover takes over the descriptors and names of an ending process, and acknowledges
// them over c. It blocks until the process ends or hands over, closes p.ending when the function
// has ended and p.inherited when the handover is over, and closes c. It runs in a goroutine of
// its own.
func (p *Process) inheritHandover(c *sys.Conn) {
	defer close(p.inherited)
	defer c.Close()
	defer p.dir.release()
	in := &catcher{conn: c}
	defer in.closeRemaining()
	if _, err := io.ReadFull(in, make([]byte, 1)); err != nil {
		return // the process was killed
	}
	close(p.ending)
	w, err := readHandover(in)
	if errors.Is(err, io.EOF) {
		return // nothing to hand over
	}
	if err == nil {
		err = w.takeOver(in, p.dir)
	}
	answer := []byte{ackByte}
	if err != nil {
		answer = []byte(err.Error())
	}
	c.Write(answer)
}

// A handover is the list of descriptors and names that an ending process hands over, as it sends
// them. The files follow it in its order. readHandover reads one.
type handover struct {
	_        struct{} `torch:",tuple"`
	Address  string   // of the resource sharer; "" if there are no descriptors
	Key      []byte   // the authkey of the resource sharer
	Keys     []int64  // the keys of the descriptors
	Names    []mapped
	Managers int // the number of connections to managers
}

// A mapped is a name of PyTorch's shared memory that an ending process hands over, and its
// number of mappings there.
type mapped struct {
	_     struct{} `torch:",tuple"`
	Name  string
	Count int // mappings in the ending process
}

// maxHandover is the limit of an encoded will, in bytes. It suffices for the largest number of
// descriptors that a process can have, and for the names.
const maxHandover = 64 << 20

func readHandover(in io.Reader) (w handover, err error) {
	b, err := nextFrame(in, maxHandover)
	if err != nil {
		return w, err
	}
	tree, err := pickle.Unmarshal(b, nil, pickle.Limits{Bytes: maxHandover})
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
		return w, protocolError("handover announces %d managers, out of range", w.Managers)
	}
	if w.Address == "" && len(w.Keys) > 0 {
		return w, protocolError("handover announces %d descriptors without an address", len(w.Keys))
	}
	return w, nil
}

// takeOver receives from in the files that w announces, and starts to serve them. dir is the
// directory of the sharer's socket.
func (w handover) takeOver(in *catcher, dir *tempDir) error {
	n := len(w.Keys) + w.Managers
	if w.Address != "" {
		n++
	}
	files, err := in.readDescriptors(n)
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

// readDescriptors reads n bytes, each with one descriptor, and returns the descriptors, which
// the caller must close. The error wraps [ErrProtocol] if the peer sent another number of them.
func (k *catcher) readDescriptors(n int) (files []*os.File, err error) {
	for range n {
		if _, err := io.ReadFull(k, make([]byte, 1)); err != nil {
			return nil, err
		}
	}
	if len(k.files) != n {
		return nil, protocolError("handover has %d files, want %d as announced", len(k.files), n)
	}
	files, k.files = k.files, nil
	return files, nil
}

// serve serves the descriptors at the address of the resource sharer that held them. It takes
// ownership of socket and files, and returns at once; a goroutine serves until the last
// descriptor is taken. It retains dir until then.
func (w handover) serve(socket *os.File, files []*os.File, dir *tempDir) error {
	addr, err := fromPython(w.Address)
	if err != nil {
		return err
	}
	l, err := sys.ListenerOn(socket, addr)
	if err != nil {
		closeFiles(files)
		return err
	}
	dir.retain() // for the sharer: its socket lies in dir
	s := &sharer{key: w.Key, listener: l, strangers: sys.NewStrangers(sys.MostStrangers),
		waiting: map[int64]*waiting{}, left: dir}
	s.mu.Lock()
	for i, key := range w.Keys {
		s.keepDescriptor(key, files[i])
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

// keptNames are names of PyTorch's shared memory in messages of an ended process. PyTorch keeps
// the names while a process is connected to their managers. The lock of the table that holds it,
// regions.mu, guards it.
type keptNames struct {
	managers []*os.File
	coming   map[string]int // the number of messages that are not received yet, by name
	until    time.Time
}

// keepNames takes ownership of the connections to the managers and keeps them open while the
// names are needed: until their messages are received, for at most 10 minutes, and while this
// process maps the files.
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
	t.releaseNamesAfter(k, tidyFirst)
}

// countOf returns the reference count of a named file: its mappings and messages. It returns 0
// if the file cannot be read.
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

// removeUnfinished removes the names in /dev/shm that the PyTorch process pid, which must have
// ended, had no time to remove. Under file_descriptor, PyTorch creates a file
// torch_PID_RANDOM_NUMBER, sets its size, maps it and unlinks it; a process that is killed in
// between, or finds no space, leaves the name. Such a file is open in no process and its count
// is 0. A file of file_system has a positive count, and PyTorch's manager removes it. See
// https://github.com/pytorch/pytorch/blob/v2.9.0/aten/src/ATen/MapAllocator.cpp.
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

// recordReceived records that one message with the given name was received, for the names of
// ended processes. The caller must hold t.mu.
func (t *regionTable) recordReceived(name string) {
	for _, k := range t.kept {
		if k.coming[name] > 0 {
			k.coming[name]--
		}
	}
}

// releaseNamesAfter checks after a pause whether the names of k are still needed, and repeats
// until they are not. It then closes the connections to the managers. It does not block.
func (t *regionTable) releaseNamesAfter(k *keptNames, pause time.Duration) {
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
			t.releaseNamesAfter(k, min(2*pause, tidyLast))
			return
		}
		closeFiles(k.managers)
		t.kept = slices.DeleteFunc(t.kept, func(other *keptNames) bool { return other == k })
	})
}
