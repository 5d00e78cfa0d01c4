package torch

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"
	"time"

	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/pickle/value"
	"github.com/shoal-mp/shoal/internal/sys"
)

// Note [What a process leaves] What Python sends is in the memory of its process until it is
// received: descriptors wait in its sharer (Note [Giving descriptors away]), and names are removed
// by PyTorch's manager when the last process that is connected to it has ended. An ordinary
// function sends its result and returns, so its process would take the result along.
//
// So a process that this one has started leaves both to this one. What Spawn tells it contains the
// text of leave.py, which Python runs before anything else. It imports nothing. When the function
// has returned, raised or exited, multiprocessing has run its finalizers, which write what queues
// have, and the threads of the process have ended, it ends the thread that serves descriptors after
// those that it was asked for, and sends over a socket of its own:
//
//	the sharer's listening socket, with its address and key, and each descriptor by its number;
//	the connections to PyTorch's managers, with the names that it has given, and how often each is mapped there.
//
// Then this process answers and the other one ends. A receiver sees no difference, in whatever
// process it is and whatever the message came through: the address is the same, and who connects
// between is in the socket's queue. Nothing is polled and no message has to be read, so a program
// may wait for the process before it receives, or not receive at all.
//
// The directory of the sharer's socket is this process's from the start (tempDir), since nothing
// that is killed tidies up. Either may be killed or stopped at any line of leave.py: what this
// process has read whole it serves, of the rest it keeps nothing.
//
// To have Python wait until all is fetched would need Go to receive, and Wait before Recv would
// hang; to fetch as messages arrive is possible for one connection and not for a queue that others
// read as well.
//
// A named file has one of its count for each mapping and each message. The process says how many
// mappings it has, ours are known, and what is left are messages: so the managers are let go when
// as many have come and their memory is not in use here.

//go:embed leave.py
var leaveCode string

// linger is how long a process that ends may wait for its heir.
const linger = time.Minute

// inherit takes over what the process leaves.
func (p *Process) inherit(c *sys.Conn) {
	defer c.Close()
	defer p.dir.leave()
	in := &catcher{conn: c}
	defer in.drop()
	if _, err := io.ReadFull(in, make([]byte, 1)); err != nil {
		return // it was killed
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

// A will says what a process leaves.
type will struct {
	_        struct{} `torch:",tuple"`
	Address  string   // of the sharer, or ""
	Key      []byte   // its authkey
	Keys     []int64  // of descriptors
	Names    []mapped
	Managers int // connections
}

// A mapped name is that of PyTorch's memory.
type mapped struct {
	_     struct{} `torch:",tuple"`
	Name  string
	Count int // of mappings in the process that ends
}

// maxWill bounds the bytes of a will: as many descriptors as a process may have, and names.
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

// serve gives the descriptors away where the process that has promised them did.
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
	s := &sharer{key: w.Key, listener: l, waiting: map[int64]*waiting{}, left: dir}
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

// keptNames are names of PyTorch's memory in messages that its process has left. They are there
// while somebody is connected to their managers.
type keptNames struct {
	managers []*os.File
	coming   map[string]int // messages
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

// countOf reads how many have a named file, 0 if there is none.
func countOf(name string) int {
	f, err := openNamed(name)
	if err != nil {
		return 0
	}
	defer f.Close()
	var b [4]byte
	if _, err := f.ReadAt(b[:], 0); err != nil {
		return 0
	}
	return int(int32(binary.NativeEndian.Uint32(b[:])))
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

// letGoIn looks after a pause whether the names are needed, and again until they are not.
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
