package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/crossing"
)

const (
	// mostInline is the largest payload, in bytes, that is stored in a single message. A larger
	// value is split into chunks.
	mostInline = 4 << 20
	// mostChunk is the size of a chunk, in bytes, if the broker's max_payload allows it.
	mostChunk = 1 << 20
	// idPrefix is the length of the timestamp at the start of a chunk id: Unix seconds as
	// hexadecimal digits.
	idPrefix = 8
)

// abandoned is the age after which unreferenced chunks are deleted. Such chunks remain if a
// producer is killed before it stores the message that references them. It is a variable only so
// that tests can shorten it.
var abandoned = time.Hour

// Note [Abandoned] The age of chunks is computed from the timestamp in their id, which the
// producer's clock made, and the clock of the host that sweeps. Clocks differ and jump, and a
// producer may block for hours while a queue is full. So chunks that seem abandoned may belong to a
// value that is still being put, and the sweep must not lose that value. The protocol: a process
// that deletes chunks first stores a mark in their stream, then checks whether a message references
// them, and deletes only messages up to the mark. A producer first stores its message and then
// checks that its chunks are present and unmarked. In every interleaving at least one of the two
// sees the other's write. A producer that sees a mark or a missing chunk writes the chunks again,
// after the mark.

// chunks is a stream that stores the pieces of values too large for one message. The subject of a
// piece is PREFIX.ID.NUMBER.
type chunks struct {
	c      *Conn
	stream string
	config jetstream.StreamConfig
}

// chunkID returns a chunk id: the current time followed by unique.
func chunkID(unique string) string { return fmt.Sprintf("%08x%s", time.Now().Unix(), unique) }

func (c *Conn) mostInline() int { return int(min(c.nc.MaxPayload()-headroom, mostInline)) }
func (c *Conn) chunkSize() int  { return int(min(c.nc.MaxPayload(), mostChunk)) }

// markToken takes the place of the piece number in the subject of a mark. A mark announces that a
// process is about to delete the pieces. See Note [Abandoned].
const markToken = "mark"

// ensureStored ensures that the pieces of a value exist after the message that references them
// was stored. It writes them again if pieces are missing or marked. It returns nil without
// writing if that message is gone, because a receiver acknowledged it. full is as for
// [chunks.writePieces], used as for [chunks.sweepUnreferenced]. See Note [Abandoned].
func (k chunks) ensureStored(ctx context.Context, prefix string, l large, o *outgoing, full func(error) error,
	used func(prefix, id string) (bool, error)) error {
	there, err := k.c.countSubjects(ctx, k.stream, prefix+"."+l.id+".*")
	if err != nil {
		return err
	}
	_, marked := there[prefix+"."+l.id+"."+markToken]
	if !marked && len(there) == len(o.splitPieces(int(l.size))) {
		return nil
	}
	if named, err := used(prefix, l.id); !named || err != nil {
		return err
	}
	if _, err := k.writePieces(ctx, prefix, l.id, o, full); err != nil {
		return err
	}
	if named, err := used(prefix, l.id); !named && err == nil {
		k.deletePieces(ctx, prefix, l.id)
	}
	return nil
}

// writePieces writes the pieces of a value under a new id and waits until they are stored. It
// returns the reference to the value, also with an error, so that the caller can delete the
// pieces. While the stream is full it calls full, which must return nil to retry or an error to
// give up.
func (k chunks) writePieces(ctx context.Context, prefix, id string, o *outgoing, full func(error) error) (large,
	error) {
	l := large{id, uint64(k.c.chunkSize()), uint64(len(o.head))}
	all := o.splitPieces(int(l.size))
	var under []*write
	end := func(n int) error {
		for ; len(under) > n; under = under[1:] {
			if err := k.completeWrite(ctx, under[0], full); err != nil {
				return err
			}
		}
		return nil
	}
	window := max(1, pipelinedBytes/int(l.size))
	for i, piece := range all {
		w := newWrite(prefix+"."+id+"."+strconv.Itoa(i), "", piece)
		k.c.startWrite(w)
		under = append(under, w)
		if err := end(window); err != nil {
			return l, err
		}
	}
	return l, end(0)
}

// completeWrite completes the write of one piece, and calls full as [chunks.writePieces] does. A
// duplicate write is harmless, because the stream keeps one message per subject.
func (k chunks) completeWrite(ctx context.Context, w *write, full func(error) error) error {
	for {
		_, err := k.c.finishWrite(ctx, w, k.createStream)
		if !isFull(err) {
			return storageError(err)
		}
		if err := full(err); err != nil {
			return err
		}
	}
}

// createStream creates the chunk stream if it does not exist.
func (k chunks) createStream(ctx context.Context) error { return k.c.createStream(ctx, k.config) }

// deletePieces deletes the pieces of a value. It ignores errors, because [chunks.sweepUnreferenced]
// deletes leftover pieces later.
func (k chunks) deletePieces(ctx context.Context, prefix, id string) {
	k.c.purgeStream(ctx, k.stream, jetstream.WithPurgeSubject(prefix+"."+id+".*"))
}

// sweepUnreferenced deletes old pieces that no message references. It examines the ids with a first
// piece that matches filter+".0". used must report whether a message references an id; prefix is
// the subject of the pieces before the id.
func (k chunks) sweepUnreferenced(ctx context.Context, filter string,
	used func(prefix, id string) (bool, error)) error {
	there, err := k.c.countSubjects(ctx, k.stream, filter+".0")
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	for subject := range there {
		tokens := strings.Split(subject, ".")
		id := tokens[len(tokens)-2]
		prefix := strings.TrimSuffix(subject, "."+id+".0")
		if len(id) < idPrefix {
			continue
		}
		made, err := strconv.ParseInt(id[:idPrefix], 16, 64)
		if err != nil || time.Since(time.Unix(made, 0)) < abandoned {
			continue
		}
		if err := k.sweepID(ctx, prefix, id, used); err != nil {
			return err
		}
	}
	return nil
}

// sweepID deletes the pieces of one value unless a message references it. See Note [Abandoned].
func (k chunks) sweepID(ctx context.Context, prefix, id string, used func(prefix, id string) (bool, error)) error {
	if named, err := used(prefix, id); named || err != nil {
		return err
	}
	marked := prefix + "." + id + "." + markToken
	mark, err := k.c.finishWrite(ctx, newWrite(marked, "", nil), k.createStream)
	if isFull(err) { // the pieces to delete probably fill the stream, so delete them without a mark
		k.deletePieces(ctx, prefix, id)
		return nil
	}
	if err != nil {
		return storageError(err)
	}
	upTo := []jetstream.StreamPurgeOpt{jetstream.WithPurgeSubject(prefix + "." + id + ".*"),
		jetstream.WithPurgeSequence(mark.Sequence + 1)}
	named, err := used(prefix, id)
	if err != nil {
		return err
	}
	if named {
		upTo[0] = jetstream.WithPurgeSubject(marked)
	}
	k.c.purgeStream(ctx, k.stream, upTo...)
	return nil
}

// readPieces fills places with the pieces that start at number first, in any order of arrival.
// Each place must have the length of its piece; otherwise the error wraps [codec.ErrFormat].
// readPieces starts at stream sequence from and returns the sequence at which the next read
// should start. A replica may lag behind the leader, so missing pieces are requested again until
// none arrives for the connection's timeout; then readPieces returns an error that wraps
// [errMissing].
func (k chunks) readPieces(ctx context.Context, prefix, id string, first int, from uint64, places [][]byte) (uint64,
	error) {
	left, have := len(places), make([]bool, len(places))
	for begun, pause := time.Now(), leastPause; left > 0; pause = min(2*pause, mostPause) {
		before := left
		wanted := scanning{filter: prefix + "." + id + ".*", from: from, batch: left}
		for m, err := range k.c.scan(ctx, k.stream, wanted) {
			if err != nil {
				return 0, err
			}
			subject := m.Header.Get(client.JSSubject)
			n, err := strconv.Atoi(subject[strings.LastIndexByte(subject, '.')+1:])
			if n -= first; err != nil || n < 0 || n >= len(places) || have[n] {
				continue
			}
			if len(m.Data) != len(places[n]) {
				return 0, fmt.Errorf("%w: chunk has %d bytes, want %d", codec.ErrFormat, len(m.Data), len(places[n]))
			}
			copy(places[n], m.Data)
			have[n] = true
			if left--; left == 0 {
				next, _ := strconv.ParseUint(m.Header.Get(client.JSSequence), 10, 64)
				return next + 1, nil
			}
		}
		if left < before {
			begun = time.Now()
		}
		if time.Since(begun) > k.c.timeout {
			return 0, fmt.Errorf("%w: %d of %d chunks missing", errMissing, left, len(places))
		}
		if err := sleep(ctx, pause); err != nil {
			return 0, err
		}
		from = 1
	}
	return from, nil
}

// errMissing is returned if chunks of a value are missing.
var errMissing = errors.New("nats: value is incomplete")

// decodeLarge reads and decodes a value that is stored in chunks. The caller must close the
// shared memory that the value holds. The error wraps [errMissing] if chunks are missing, and
// [codec.ErrFormat] if they are malformed.
func decodeLarge[T any](ctx context.Context, plan *codec.Plan[T], k chunks, prefix string, l large) (v T, err error) {
	head := make([]byte, l.head)
	places := splitPieces(head, int(l.size))
	next, err := k.readPieces(ctx, prefix, l.id, 0, 1, places)
	if err != nil {
		return v, err
	}
	m, parts, err := crossing.Open(head)
	if err != nil {
		return v, err
	}
	first := len(places)
	places = nil
	for _, p := range parts {
		places = append(places, splitPieces(p, int(l.size))...)
	}
	if _, err := k.readPieces(ctx, prefix, l.id, first, next, places); err != nil {
		crossing.Release(m.Blocks)
		return v, err
	}
	return crossing.Decode(plan, m)
}

// A scanning selects messages of a stream: a subject filter and a start, either a sequence number
// or a time.
type scanning struct {
	filter string
	from   uint64
	since  time.Time
	upTo   uint64 // last sequence number known to exist, or 0
	batch  int    // number of messages wanted; 0 for all
}

const (
	scanBatch = 64
	scanBytes = 16 << 20
)

// scan iterates over messages of a stream with the direct get API, oldest first, without
// consuming them. Their headers contain the subject and the sequence number. scan continues
// until no message follows, even if s.batch is set. An error is yielded once and ends the loop;
// it is [client.ErrNoResponders] if there is no such stream.
func (c *Conn) scan(ctx context.Context, stream string, s scanning) iter.Seq2[*client.Msg, error] {
	return func(yield func(*client.Msg, error) bool) {
		got := make(chan *client.Msg, 2*scanBatch)
		inbox := c.nc.NewInbox()
		sub, err := c.nc.ChanSubscribe(inbox, got)
		if err != nil {
			yield(nil, err)
			return
		}
		defer sub.Unsubscribe()
		for more := true; more; {
			if err := c.awaitConnection(ctx); err != nil {
				yield(nil, err)
				return
			}
			if err := c.nc.PublishRequest("$JS.API.DIRECT.GET."+stream, inbox, s.requestBody()); err != nil {
				if err := sleep(ctx, leastPause); err != nil {
					yield(nil, err)
					return
				}
				continue
			}
			m, err := c.awaitScanned(ctx, got)
			for ; err == nil && m.Header.Get("Status") == ""; m, err = c.awaitScanned(ctx, got) {
				n, _ := strconv.ParseUint(m.Header.Get(client.JSSequence), 10, 64)
				if n < s.from { // response to a request that was abandoned
					continue
				}
				s.from, s.since = n+1, time.Time{}
				if !yield(m, nil) {
					return
				}
			}
			switch {
			case errors.Is(err, errSilent):
			case err != nil:
				yield(nil, err)
				return
			default:
				more, err = s.hasMore(m)
				if err != nil {
					yield(nil, err)
					return
				}
			}
		}
	}
}

// requestBody returns the JSON body of a batched direct get request.
func (s scanning) requestBody() []byte {
	r := struct {
		Seq   uint64     `json:"seq,omitempty"`
		Since *time.Time `json:"start_time,omitempty"`
		Next  string     `json:"next_by_subj"`
		Batch int        `json:"batch"`
		Bytes int        `json:"max_bytes"`
	}{s.from, nil, s.filter, scanBatch, scanBytes}
	if s.batch > 0 {
		r.Batch = min(s.batch, scanBatch)
	}
	if !s.since.IsZero() {
		r.Since, r.Seq = &s.since, 0
	}
	b, _ := json.Marshal(r)
	return b
}

// hasMore reports whether more messages follow, given the status message that ended a batch. It
// returns [client.ErrNoResponders] if no stream answers, and an error that wraps [ErrBroker] for
// an unknown status.
func (s scanning) hasMore(m *client.Msg) (bool, error) {
	switch status := m.Header.Get("Status"); status {
	case "204":
		pending := m.Header.Get("Nats-Num-Pending")
		return pending != "" && pending != "0" || s.from <= s.upTo, nil
	case "404":
		return false, nil
	case "503":
		return false, client.ErrNoResponders
	default:
		return false, fmt.Errorf("%w: unexpected status %s %s", ErrBroker, status, m.Header.Get("Description"))
	}
}

// errSilent is returned if the broker stops in the middle of a batch.
var errSilent = errors.New("nats: the broker stopped responding")

func (c *Conn) awaitScanned(ctx context.Context, got <-chan *client.Msg) (*client.Msg, error) {
	select {
	case m := <-got:
		return m, nil
	default:
	}
	t := time.NewTimer(c.timeout)
	defer t.Stop()
	select {
	case m := <-got:
		return m, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-c.sessionDone():
		return nil, errSilent
	case <-t.C:
		return nil, errSilent
	}
}
