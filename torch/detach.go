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

// oneAtATime has a lock for each sharer of another process: Python's sharers serve one receiver at
// a time and have little room for more.
var oneAtATime sync.Map // address to *sync.Mutex

// detach fetches a descriptor from the sharer at addr, if it has not come already. It waits for a
// sharer whose process is stopped: nobody else could fetch the descriptor.
func detach(addr string, key int64, authkey []byte) (*os.File, error) {
	if len(authkey) == 0 {
		return nil, ErrNoKey
	}
	if a := aheadOf(addr, key, authkey); a != nil {
		return a.take(key)
	}
	lock, _ := oneAtATime.LoadOrStore(addr, new(sync.Mutex))
	lock.(*sync.Mutex).Lock()
	defer lock.(*sync.Mutex).Unlock()
	c, err := sys.Dial(context.Background(), addr)
	if err != nil {
		return nil, fmt.Errorf("fetch a descriptor: %w: %w", ErrGone, err)
	}
	defer c.Close()
	f, err := take(c, key, authkey)
	switch {
	case err == nil:
		return f, nil
	case otherEnded(err): // the sender has ended while it was asked
		err = fmt.Errorf("%w: %w", ErrGone, err)
	}
	return nil, fmt.Errorf("fetch a descriptor: %w", err)
}

// take gets the descriptor of a key from a sharer that was just dialled.
func take(c *sys.Conn, key int64, authkey []byte) (*os.File, error) {
	request, err := pickle.Marshal(python.Tuple{key, os.Getpid()}, 4)
	if err != nil {
		return nil, err
	}
	in := &catcher{conn: c}
	defer in.drop()
	if err := authClient(in, authkey, request); err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(in, make([]byte, 1)); err != nil {
		return nil, err
	}
	if len(in.files) != 1 || len(in.ahead) > 0 {
		return nil, protocolError("%d descriptors and %d bytes too many from a sharer", len(in.files), len(in.ahead))
	}
	sys.SendFiles(c, []byte{ackByte}) // without a signal: Python up to 3.13 has closed already
	f := in.files[0]
	in.files = nil
	return f, nil
}

// A catcher reads all bytes that have come at once, and keeps the descriptors that came with them.
type catcher struct {
	conn  *sys.Conn
	room  [authLimit]byte
	ahead []byte // of room: not yet read
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

// drop closes the files that nobody took.
func (k *catcher) drop() {
	for _, f := range k.files {
		f.Close()
	}
}
