package keeper

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/shoal-mp/shoal/internal/arena/socket"
	"github.com/shoal-mp/shoal/internal/arena/word"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/shm"
)

// A Note is a value kept beside a descriptor. Its meaning is defined by the caller of
// [Client.Keep].
type Note [24]byte

// A record is a message between the keeper and a client; some records carry a file. A client sends
// opKeep, opFetch, opSweep and opWatch, and the keeper answers opDone, opUnknown or opFull. The
// keeper also sends opDropped, unasked, to clients that watch.
type record struct {
	op    uint64
	block word.Handle
	note  Note
}

const (
	opKeep    = iota + 1 // keep the file as long as the block has a holder
	opFetch              // send the file of the block
	opSweep              // look for blocks that have no holder left
	opWatch              // send opDropped from now on
	opDone               // success, with the file that was asked for
	opUnknown            // there is no file for the block, or it was refused
	opFull               // the keeper has no room
	opDropped            // the block has no holder left, and its file was closed

	recordSize = 40
)

// patience is the time limit of connecting to the keeper, and of each write to a connection.
const patience = 30 * time.Second

// Address returns the abstract address at which the keeper of d listens.
func Address(d Domain) string { return fmt.Sprintf("@shoal/%x/keeper", d.Token()) }

// A line is one end of a connection between the keeper and a client.
type line struct {
	conn    *sys.Conn
	mu      sync.Mutex // serialises writes
	watches bool       // the client wants opDropped; guarded by Keeper.mu
}

// sendRecord sends a record and files, which remain the caller's. It fails if the peer does not
// read for [patience]. It may be called from several goroutines.
func (l *line) sendRecord(r record, files ...*os.File) error {
	b := make([]byte, 0, recordSize)
	b = binary.LittleEndian.AppendUint64(b, r.op)
	b = binary.LittleEndian.AppendUint64(b, uint64(r.block))
	b = append(b, r.note[:]...)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.conn.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	return sys.SendFiles(l.conn, b, files...)
}

// receiveRecord waits for the next record. The caller must close the file, if it is not nil. If the
// error is [sys.ErrNoDescriptors], the record is valid, but its file was lost because this process
// has no descriptors left.
func (l *line) receiveRecord() (r record, f *os.File, err error) {
	b := make([]byte, recordSize)
	n, files, err := sys.RecvFiles(l.conn, b, 1)
	var lost error
	if errors.Is(err, sys.ErrNoDescriptors) {
		lost, err = err, nil
	}
	if err == nil {
		_, err = io.ReadFull(l.conn, b[n:])
	}
	if err != nil {
		return r, nil, errors.Join(err, socket.CloseFiles(files))
	}
	r.op = binary.LittleEndian.Uint64(b)
	r.block = word.Handle(binary.LittleEndian.Uint64(b[8:]))
	copy(r.note[:], b[16:])
	if len(files) > 0 {
		f = files[0]
	}
	return r, f, lost
}

// A Client is this process's connection to the domain's keeper. [Dial] makes it. Its methods may
// be called from several goroutines. See Note [Kept descriptors].
type Client struct {
	line
	asking  sync.Mutex // serialises requests, since answers come in order
	answers chan answer
	dropped func(word.Handle) // called for each opDropped
	done    sync.WaitGroup
}

// An answer is the keeper's answer to a request, and the file that came with it, or nil. The
// receiver must close the file. err is not nil if the file was lost.
type answer struct {
	record
	file *os.File
	err  error
}

// Dial connects to the keeper of d. The caller must close the client. After [Client.Watch],
// dropped is called in the client's goroutine for each block that has no holder left. dropped
// must not call methods of the client, which would wait for that goroutine. The error wraps
// [shm.ErrKeeper].
func Dial(d Domain, dropped func(word.Handle)) (*Client, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := sys.Dial(ctx, Address(d))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", shm.ErrKeeper, err)
	}
	if err := socket.CheckSameUser(conn); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", shm.ErrKeeper, err), conn.Close())
	}
	c := &Client{line: line{conn: conn}, answers: make(chan answer, 1), dropped: dropped}
	c.done.Go(c.readRecords)
	return c, nil
}

// readRecords reads records until the connection ends. It is the client's goroutine: it calls
// dropped, and passes answers on to roundTrip.
func (c *Client) readRecords() {
	defer close(c.answers)
	for {
		r, f, err := c.receiveRecord()
		switch {
		case err != nil && !errors.Is(err, sys.ErrNoDescriptors):
			return
		case r.op == opDropped:
			c.dropped(r.block)
		default:
			c.answers <- answer{r, f, err}
		}
	}
}

// Close closes the connection and waits for the client's goroutine. Pending requests return an
// error that wraps [shm.ErrKeeper].
func (c *Client) Close() error {
	err := c.conn.Close()
	for a := range c.answers {
		if a.file != nil {
			a.file.Close()
		}
	}
	c.done.Wait()
	return err
}

// Keep has the keeper hold a duplicate of f, with a note, until no process and no message holds
// block h. The caller must hold the block. A block has at most one file. f remains the caller's,
// and may be closed when Keep returns.
//
// The error wraps [shm.ErrKeeper] if the keeper's process has ended or if the block has a file
// already, and [shm.ErrTooManyFiles] if the keeper has no room.
func (c *Client) Keep(h word.Handle, note Note, f *os.File) error {
	_, err := c.roundTrip(record{op: opKeep, block: h, note: note}, f)
	return err
}

// Fetch returns the file that was kept for block h, and its note. The caller must hold the block,
// and must close the file: it is another descriptor of the same open file description. The error
// wraps [shm.ErrKeeper] if there is no such file, or if the keeper's process has ended.
func (c *Client) Fetch(h word.Handle) (*os.File, Note, error) {
	a, err := c.roundTrip(record{op: opFetch, block: h})
	if err == nil && a.file == nil {
		err = fmt.Errorf("%w: no file received for block %v", shm.ErrKeeper, h)
	}
	return a.file, a.note, err
}

// Sweep has the keeper close the files of blocks that have no holder left, and waits until it
// has. The keeper also does so by itself, within a second. The error wraps [shm.ErrKeeper] if
// the keeper's process has ended.
func (c *Client) Sweep() error {
	_, err := c.roundTrip(record{op: opSweep})
	return err
}

// Watch has the keeper tell this client which blocks it drops from now on; see [Dial]. The error
// wraps [shm.ErrKeeper] if the keeper's process has ended.
func (c *Client) Watch() error {
	_, err := c.roundTrip(record{op: opWatch})
	return err
}

// roundTrip sends a request and waits for the answer. It may be called from several goroutines. The
// files remain the caller's, and the caller must close the answer's file, if it is not nil. All
// opDropped records that the keeper sent before the answer have been handled when roundTrip
// returns. The error wraps [shm.ErrKeeper] if the keeper has ended or has no such file, and
// [shm.ErrTooManyFiles] if it has no room.
func (c *Client) roundTrip(r record, files ...*os.File) (answer, error) {
	c.asking.Lock()
	defer c.asking.Unlock()
	if err := c.sendRecord(r, files...); err != nil {
		return answer{}, fmt.Errorf("%w: %w", shm.ErrKeeper, err)
	}
	a, ok := <-c.answers
	switch {
	case !ok:
		return answer{}, shm.ErrKeeper
	case a.err != nil:
		return answer{}, a.err
	case a.op == opFull:
		return answer{}, fmt.Errorf("%w: want at most %d", shm.ErrTooManyFiles, maxKept)
	case a.op != opDone:
		return answer{}, errors.Join(fmt.Errorf("%w: no file for block %v", shm.ErrKeeper, r.block), a.closeFile())
	}
	return a, nil
}

// closeFile closes the file of an answer, if there is one.
func (a answer) closeFile() error {
	if a.file == nil {
		return nil
	}
	return a.file.Close()
}
