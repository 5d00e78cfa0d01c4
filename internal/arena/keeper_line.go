package arena

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
)

// A Note is kept beside a descriptor. Its meaning is the matter of the process that calls Keep.
type Note [24]byte

// A record is a message between the keeper and a client, some with a file. A client asks keep,
// fetch, sweep and watch; the keeper answers done, unknown and full. The keeper says dropped
// without being asked, to the clients that watch.
type record struct {
	op    uint64
	block Handle
	note  Note
}

const (
	opKeep    = iota + 1 // keep the file, as long as somebody holds the block
	opFetch              // give it
	opSweep              // look for blocks that nobody holds any more
	opWatch              // say from now on which blocks are dropped
	opDone               // yes, with the file that was asked for
	opUnknown            // no file is kept for the block
	opFull               // too many are kept
	opDropped            // nobody holds this block any more, and its file is closed

	recordSize = 40
)

// keeperPatience is how long the other side of a connection may take.
const keeperPatience = 30 * time.Second

// keeperAddress is where the process that made a domain listens.
func keeperAddress(d *Domain) string { return fmt.Sprintf("@shoal/%x/keeper", d.Token()) }

// A line is one end of a connection.
type line struct {
	conn    *sys.Conn
	mu      sync.Mutex // of saying
	watches bool       // the client is told which blocks are dropped; under keeper.mu
}

func (l *line) say(r record, files ...*os.File) error {
	b := make([]byte, 0, recordSize)
	b = binary.LittleEndian.AppendUint64(b, r.op)
	b = binary.LittleEndian.AppendUint64(b, uint64(r.block))
	b = append(b, r.note[:]...)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.conn.SetWriteDeadline(time.Now().Add(keeperPatience)); err != nil {
		return err
	}
	return sys.SendFiles(l.conn, b, files...)
}

// hear waits for the next record. The caller closes the file, if there is one. With
// sys.ErrNoDescriptors the record has come, and its file was lost for want of room.
func (l *line) hear() (r record, f *os.File, err error) {
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
		return r, nil, errors.Join(err, closeAll(files))
	}
	r.op = binary.LittleEndian.Uint64(b)
	r.block = Handle(binary.LittleEndian.Uint64(b[8:]))
	copy(r.note[:], b[16:])
	if len(files) > 0 {
		f = files[0]
	}
	return r, f, lost
}

// A keeperClient is this process's connection to a domain's keeper. See Note [Who keeps a
// descriptor].
type keeperClient struct {
	line
	asking  sync.Mutex
	answers chan keeperAnswer
	dropped func(Handle)
	done    sync.WaitGroup
}

type keeperAnswer struct {
	record
	file *os.File
	err  error
}

// dialKeeper connects to the keeper. Once the client watches, dropped is called, on a goroutine,
// for each block that nobody holds any more.
func dialKeeper(d *Domain, dropped func(Handle)) (*keeperClient, error) {
	ctx, cancel := context.WithTimeout(context.Background(), keeperPatience)
	defer cancel()
	conn, err := sys.Dial(ctx, keeperAddress(d))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKeeper, err)
	}
	if err := sameUser(conn); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrKeeper, err), conn.Close())
	}
	c := &keeperClient{line: line{conn: conn}, answers: make(chan keeperAnswer, 1), dropped: dropped}
	c.done.Go(c.listen)
	return c, nil
}

func (c *keeperClient) listen() {
	defer close(c.answers)
	for {
		r, f, err := c.hear()
		switch {
		case err != nil && !errors.Is(err, sys.ErrNoDescriptors):
			return
		case r.op == opDropped:
			c.dropped(r.block)
		default:
			c.answers <- keeperAnswer{r, f, err}
		}
	}
}

// Close ends the connection.
func (c *keeperClient) Close() error {
	err := c.conn.Close()
	for a := range c.answers {
		if a.file != nil {
			a.file.Close()
		}
	}
	c.done.Wait()
	return err
}

// ask sends a record and waits for the answer. A client that watches has been told of all blocks
// that were dropped before the answer.
func (c *keeperClient) ask(r record, files ...*os.File) (keeperAnswer, error) {
	c.asking.Lock()
	defer c.asking.Unlock()
	if err := c.say(r, files...); err != nil {
		return keeperAnswer{}, fmt.Errorf("%w: %w", ErrKeeper, err)
	}
	a, ok := <-c.answers
	switch {
	case !ok:
		return keeperAnswer{}, ErrKeeper
	case a.err != nil:
		return keeperAnswer{}, a.err
	case a.op == opFull:
		return keeperAnswer{}, fmt.Errorf("%w: %d are the most", ErrTooManyFiles, maxKept)
	case a.op != opDone:
		return keeperAnswer{}, errors.Join(fmt.Errorf("%w: it has no file for %v", ErrKeeper, r.block), a.end())
	}
	return a, nil
}

func (a keeperAnswer) end() error {
	if a.file == nil {
		return nil
	}
	return a.file.Close()
}
