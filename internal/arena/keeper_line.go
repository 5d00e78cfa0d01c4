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

// A Note is a value kept beside a descriptor. Its meaning is defined by the caller of
// [Domain.Keep].
type Note [24]byte

// A record is a message between the keeper and a client; some records carry a file. A client sends
// opKeep, opFetch, opSweep and opWatch, and the keeper answers opDone, opUnknown or opFull. The
// keeper also sends opDropped, unasked, to clients that watch.
type record struct {
	op    uint64
	block Handle
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

// keeperPatience is the time limit of connecting to the keeper, and of each write to a connection.
const keeperPatience = 30 * time.Second

// keeperAddress returns the abstract address at which the keeper of d listens.
func keeperAddress(d *Domain) string { return fmt.Sprintf("@shoal/%x/keeper", d.Token()) }

// A line is one end of a connection between the keeper and a client.
type line struct {
	conn    *sys.Conn
	mu      sync.Mutex // serialises writes
	watches bool       // the client wants opDropped; guarded by keeper.mu
}

// sendRecord sends a record and files. It may be called from several goroutines.
func (l *line) sendRecord(r record, files ...*os.File) error {
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
		return r, nil, errors.Join(err, closeFiles(files))
	}
	r.op = binary.LittleEndian.Uint64(b)
	r.block = Handle(binary.LittleEndian.Uint64(b[8:]))
	copy(r.note[:], b[16:])
	if len(files) > 0 {
		f = files[0]
	}
	return r, f, lost
}

// A keeperClient is this process's connection to the domain's keeper. See Note [Kept
// descriptors].
type keeperClient struct {
	line
	asking  sync.Mutex // serialises requests, since answers come in order
	answers chan keeperAnswer
	dropped func(Handle) // called for each opDropped
	done    sync.WaitGroup
}

// A keeperAnswer is an answer, and the file that came with it. The receiver must close the file.
type keeperAnswer struct {
	record
	file *os.File
	err  error
}

// dialKeeper connects to the keeper of d. The caller must close the client. After an opWatch,
// dropped is called in the client's goroutine for each block that has no holder left. The error
// wraps [ErrKeeper].
func dialKeeper(d *Domain, dropped func(Handle)) (*keeperClient, error) {
	ctx, cancel := context.WithTimeout(context.Background(), keeperPatience)
	defer cancel()
	conn, err := sys.Dial(ctx, keeperAddress(d))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKeeper, err)
	}
	if err := checkSameUser(conn); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrKeeper, err), conn.Close())
	}
	c := &keeperClient{line: line{conn: conn}, answers: make(chan keeperAnswer, 1), dropped: dropped}
	c.done.Go(c.readRecords)
	return c, nil
}

// readRecords reads records until the connection ends.
func (c *keeperClient) readRecords() {
	defer close(c.answers)
	for {
		r, f, err := c.receiveRecord()
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

// Close closes the connection and waits for the client's goroutine.
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

// roundTrip sends a request and waits for the answer. All opDropped records that the keeper sent
// before the answer have been handled when roundTrip returns. The error wraps [ErrKeeper] if the
// keeper has ended or has no such file, and [ErrTooManyFiles] if it has no room.
func (c *keeperClient) roundTrip(r record, files ...*os.File) (keeperAnswer, error) {
	c.asking.Lock()
	defer c.asking.Unlock()
	if err := c.sendRecord(r, files...); err != nil {
		return keeperAnswer{}, fmt.Errorf("%w: %w", ErrKeeper, err)
	}
	a, ok := <-c.answers
	switch {
	case !ok:
		return keeperAnswer{}, ErrKeeper
	case a.err != nil:
		return keeperAnswer{}, a.err
	case a.op == opFull:
		return keeperAnswer{}, fmt.Errorf("%w: want at most %d", ErrTooManyFiles, maxKept)
	case a.op != opDone:
		return keeperAnswer{}, errors.Join(fmt.Errorf("%w: no file for block %v", ErrKeeper, r.block), a.closeFile())
	}
	return a, nil
}

// closeFile closes the file of an answer, if there is one.
func (a keeperAnswer) closeFile() error {
	if a.file == nil {
		return nil
	}
	return a.file.Close()
}
