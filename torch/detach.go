package torch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/sys"
)

// oneAtATime holds a lock for each resource sharer of another process. Python's resource sharer
// serves one receiver at a time and has a short listen backlog.
var oneAtATime sync.Map // address to *sync.Mutex

// fetchDescriptor returns the descriptor that the resource sharer at addr holds under key, or
// the one that was sent ahead. The caller must close the file. fetchDescriptor waits without a
// limit for a sharer in a stopped process, because no other process can provide the descriptor.
// The error wraps [ErrGone] if the sender has ended or no longer has the descriptor, and is
// [ErrNoKey] if authkey is empty.
func fetchDescriptor(addr string, key int64, authkey []byte) (*os.File, error) {
	if len(authkey) == 0 {
		return nil, ErrNoKey
	}
	if a := aheadOf(addr, key, authkey); a != nil {
		return a.takeDescriptor(key)
	}
	lock, _ := oneAtATime.LoadOrStore(addr, new(sync.Mutex))
	lock.(*sync.Mutex).Lock()
	defer lock.(*sync.Mutex).Unlock()
	c, err := sys.Dial(context.Background(), addr)
	if err != nil {
		return nil, fmt.Errorf("fetch descriptor: %w: %w", ErrGone, err)
	}
	defer c.Close()
	f, err := askSharer(c, key, authkey)
	switch {
	case err == nil:
		return f, nil
	case isPeerEnd(err): // the sender ended during the request
		err = fmt.Errorf("%w: %w", ErrGone, err)
	}
	return nil, fmt.Errorf("fetch descriptor: %w", err)
}

// askSharer requests the descriptor with the given key over a new connection to a resource
// sharer. The caller must close the connection and the returned file.
func askSharer(c *sys.Conn, key int64, authkey []byte) (*os.File, error) {
	request, err := pickle.Marshal(python.Tuple{key, os.Getpid()}, 4)
	if err != nil {
		return nil, err
	}
	in := &catcher{conn: c}
	defer in.closeRemaining()
	if err := authClient(in, authkey, request); err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(in, make([]byte, 1)); err != nil {
		return nil, err
	}
	if len(in.files) != 1 || len(in.ahead) > 0 {
		return nil, protocolError("resource sharer sent %d descriptors and %d extra bytes, want 1 and 0",
			len(in.files), len(in.ahead))
	}
	sys.SendFiles(c, []byte{ackByte}) // no SIGPIPE: Python up to 3.13 has closed already
	f := in.files[0]
	in.files = nil
	return f, nil
}

// A catcher is a reader and writer of one connection that keeps in files the descriptors which
// arrive together with the bytes. One goroutine may use it. The caller must call closeRemaining
// at the end.
type catcher struct {
	conn  *sys.Conn
	room  [authLimit]byte
	ahead []byte // the unread part of room
	files []*os.File
}

func (k *catcher) Read(b []byte) (int, error) {
	if len(k.ahead) == 0 {
		n, files, err := sys.RecvFiles(k.conn, k.room[:], 1)
		k.files = append(k.files, files...)
		if errors.Is(err, io.EOF) {
			err = io.EOF
		}
		if err != nil {
			return 0, err
		}
		k.ahead = k.room[:n]
	}
	n := copy(b, k.ahead)
	k.ahead = k.ahead[n:]
	return n, nil
}

func (k *catcher) Write(b []byte) (int, error) { return k.conn.Write(b) }

// closeRemaining closes the descriptors that were not taken.
func (k *catcher) closeRemaining() {
	for _, f := range k.files {
		f.Close()
	}
}
