package service

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/internal/maker"
	"github.com/shoal-mp/shoal/internal/link/secure"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/ipc/tcp"
	"github.com/shoal-mp/shoal/shm"
	"github.com/shoal-mp/shoal/tensor"
)

// beatTime is the interval between heartbeats.
const beatTime = 250 * time.Millisecond

// A Host makes batches for trainers. Apart from the dealer for Dynamic trainers it is stateless.
// Its methods may be called from several goroutines.
type Host struct {
	listener *ipc.Listener[frame]
	maker    maker.Maker
	opts     HostOptions
	hello    []byte
	cache    *cache
	dealer   *dealer
	ctx      context.Context
	end      context.CancelFunc
	done     sync.WaitGroup
	meter    hostMeter
	begin    time.Time
}

// Listen serves the batches of a Loader at a TCP address such as ":7070", or ":0" for a free
// port. It uses the Loader's data set and options, but starts its own workers; for a Stream it
// starts workers for each loop of a trainer. The caller keeps the ownership of l, and must close
// the Host. It returns [ErrOptions] if the Loader has a World larger than 1, or if opts do not
// apply to a Stream, and an error that wraps [ErrLedger] if the ledger cannot be used.
func Listen(l *data.Loader, addr string, opts HostOptions) (*Host, error) {
	m, err := maker.Open(l)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	h, err := listen(m, addr, opts)
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return h, nil
}

func listen(m maker.Maker, addr string, opts HostOptions) (_ *Host, err error) {
	h := &Host{maker: m, begin: time.Now()}
	if h.opts, err = opts.withDefaults(m.Workers()); err != nil {
		return nil, err
	}
	if !h.opts.Unencrypted {
		if h.opts.TLS, err = secure.ServerConfig(h.opts.TLS); err != nil {
			return nil, err
		}
	}
	h.ctx, h.end = context.WithCancel(context.Background())
	h.cache = newCache(h.opts.Cache)
	served := hello{Version: version, Identity: m.Identity(), Name: h.opts.Name, BeatMS: int(beatTime.Milliseconds())}
	if served.Parts > 0 && (h.opts.Cache > 0 || h.opts.Ledger != "") {
		h.end()
		return nil, fmt.Errorf("%w: Cache and Ledger need batch indices, which a Stream does not have: "+
			"leave them out", ErrOptions)
	}
	if served.Name == "" && (served.Samples > 0 || served.Parts > 0) {
		if served.Name, err = h.fingerprint(served.Parts); err != nil {
			h.end()
			return nil, fmt.Errorf("load the first sample: %w", err)
		}
	}
	records, err := openLedger(h.opts.Ledger, served)
	if err != nil {
		h.end()
		return nil, err
	}
	served.Ledger, h.dealer = records.id, newDealer(served.Batches, records, h.opts.Patience)
	if h.hello, err = served.encode(); err == nil {
		h.listener, err = ipc.ListenWith[frame]("tcp://"+addr, h.opts.Key, ipc.MeetingOptions{
			Transport: tcp.Options{TLS: h.opts.TLS, Unencrypted: h.opts.Unencrypted}})
	}
	if err != nil {
		h.end()
		return nil, errors.Join(err, records.close())
	}
	h.done.Go(h.accept)
	return h, nil
}

// fingerprint returns a hash of the first sample, or, if parts is not 0, of the first sample of
// the first of so many parts of a Stream.
func (h *Host) fingerprint(parts int) (string, error) {
	first := frame{Kind: frameGather, Indices: []int{0}}
	if parts > 0 {
		first = frame{Kind: frameRead, Portion: maker.Portion{Count: parts, N: 1}}
	}
	r := h.maker.Reader()
	defer r.Close()
	b, err := h.makeBatch(h.ctx, first, r)
	if err != nil {
		return "", err
	}
	defer b.Close()
	sum := fnv.New64a()
	fmt.Fprint(sum, b.Spec)
	for _, t := range b.Tensors {
		fmt.Fprint(sum, t.DType(), t.Shape())
		sum.Write(tensor.Bytes(t))
	}
	return fmt.Sprintf("%016x", sum.Sum64()), nil
}

// Addr returns the address of the host, with the actual port if the port was 0.
func (h *Host) Addr() string { return h.listener.Addr()[len("tcp://"):] }

// Fingerprint returns the SHA-256 hash of the host's certificate, for Options.Fingerprint. It is
// zero if HostOptions.TLS selects among several certificates, or with Unencrypted.
func (h *Host) Fingerprint() [sha256.Size]byte { return secure.FingerprintOf(h.opts.TLS) }

// Close closes all connections and stops the workers. Requests in progress are abandoned. It is
// idempotent.
func (h *Host) Close() error {
	h.end()
	err := h.listener.Close()
	h.done.Wait()
	h.cache.clear()
	return errors.Join(err, h.maker.Close(), h.dealer.close())
}

func (h *Host) accept() {
	for {
		conn, err := h.listener.Accept(h.ctx)
		if err != nil {
			return
		}
		h.done.Go(func() {
			t := &guest{host: h, conn: conn, asked: make(chan frame, mostAsked), replies: make(chan frame, 4*mostAsked),
				dropped: make(map[uint64]bool), loops: make(map[uint64]maker.Reader), heard: time.Now()}
			t.serve()
		})
	}
}

// A guest is the server side of a connection to a trainer.
type guest struct {
	host    *Host
	conn    *ipc.Conn[frame]
	asked   chan frame
	replies chan frame // frames from the dealer
	leaving sync.WaitGroup

	mu      sync.Mutex
	loops   map[uint64]maker.Reader // readers of a Stream, by loop id
	dropped map[uint64]bool         // pending requests by id; true if cancelled
	dynamic bool                    // uses the dealer, so it must send heartbeats
	heard   time.Time               // time of its last frame
}

// serve handles the connection until the trainer disconnects or is silent, or the host is
// closed. It then closes everything that belongs to the guest.
func (g *guest) serve() {
	h := g.host
	ctx, end := context.WithCancel(h.ctx)
	defer context.AfterFunc(ctx, func() { g.conn.Close() })()
	h.meter.addTrainers(1)
	defer h.meter.addTrainers(-1)
	var done sync.WaitGroup
	defer func() {
		end()
		g.conn.Close()
		done.Wait()
		for _, r := range g.loops {
			r.Close()
		}
		g.leaving.Wait()
		h.dealer.handleDisconnect(g)
	}()
	if g.send(frame{Kind: frameHello, Body: h.hello}) != nil {
		return
	}
	done.Go(func() { g.sendHeartbeats(ctx); end() })
	done.Go(func() {
		for {
			select {
			case f := <-g.replies:
				if g.send(f) != nil {
					end()
					return
				}
			case <-ctx.Done():
				return
			}
		}
	})
	for range h.opts.Ahead {
		done.Go(func() {
			for {
				select {
				case f := <-g.asked:
					if g.answerRequest(ctx, f) != nil {
						end()
						return
					}
				case <-ctx.Done():
					return
				}
			}
		})
	}
	for g.receive(ctx) == nil {
	}
}

var errTooMany = errors.New("too many requests")

// receive handles one frame of the trainer. An error ends the connection.
func (g *guest) receive(ctx context.Context) error {
	f, err := g.conn.Recv(ctx)
	if err != nil {
		return err
	}
	f.batch().Close() // trainers must not send tensors
	g.mu.Lock()
	g.heard = time.Now()
	g.dynamic = g.dynamic || f.Kind == frameNext
	g.mu.Unlock()
	switch f.Kind {
	case frameBeat:
		return nil
	case frameNext:
		return g.host.dealer.assignBatch(g, f)
	case frameAck:
		g.host.dealer.recordAck(g, f)
		return nil
	case frameHold:
		g.host.dealer.restoreBatch(g, f)
		return nil
	case frameGive:
		g.host.dealer.returnBatch(g, f)
		return nil
	case frameCancel:
		g.host.dealer.cancelRequest(g, f.ID)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch f.Kind {
	case frameAsk, frameGather, frameRead:
		if len(f.Indices) > mostGathered {
			return errTooMany
		}
		g.dropped[f.ID] = false
		select {
		case g.asked <- f:
		default:
			return errTooMany
		}
	case frameCancel:
		if _, ok := g.dropped[f.ID]; ok {
			g.dropped[f.ID] = true
		}
	case frameLeave: // the trainer has cancelled the loop's pending requests before
		if r := g.loops[f.Loop]; r != nil {
			delete(g.loops, f.Loop)
			g.leaving.Go(func() { r.Close() })
		}
	default:
		return fmt.Errorf("unknown frame kind %d", f.Kind)
	}
	return nil
}

func (g *guest) sendHeartbeats(ctx context.Context) {
	tick := time.NewTicker(beatTime)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if g.isSilent() || g.send(frame{Kind: frameBeat}) != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// isSilent reports whether a trainer that uses the dealer has sent nothing for Patience. Other
// trainers need not send heartbeats.
func (g *guest) isSilent() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.dynamic && time.Since(g.heard) > g.host.opts.Patience
}

// queueReply queues a frame from the dealer. It must not block, because the dealer calls it with
// its lock held.
func (g *guest) queueReply(f frame) {
	select {
	case g.replies <- f:
	default: // the trainer sends requests but does not read answers
		g.conn.Close()
	}
}

// send sends a frame. It returns an error if the trainer does not receive it within Patience.
func (g *guest) send(f frame) error {
	ctx, cancel := context.WithTimeout(g.host.ctx, g.host.opts.Patience)
	defer cancel()
	return g.conn.Send(ctx, f)
}

// answerRequest makes the requested batch and sends it, or sends the error if the batch cannot be
// made. It returns an error if sending fails or ctx is done; then the caller must end the
// connection.
func (g *guest) answerRequest(ctx context.Context, f frame) error {
	defer func() {
		g.mu.Lock()
		delete(g.dropped, f.ID)
		g.mu.Unlock()
	}()
	r, wanted, err := g.readerFor(f)
	if !wanted {
		return nil
	}
	var b maker.Batch
	var release func()
	if err == nil {
		b, release, err = g.host.requestedBatch(ctx, f, r)
	}
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		if !g.wantsRequest(f) { // the loop ended meanwhile
			return nil
		}
		g.host.meter.countFailed()
		return g.send(frame{Kind: frameFailed, ID: f.ID, Err: err})
	}
	defer release()
	n := 0
	for _, t := range b.Tensors {
		n += t.Nbytes()
	}
	g.host.meter.addHeld(n)
	defer g.host.meter.addHeld(-n)
	out := frame{Kind: frameBatch, ID: f.ID, Samples: b.Samples, Spec: b.Spec, Tensors: b.Tensors,
		Read: b.Read, End: b.End}
	if err = g.send(out); err == nil && out.hasBatch() {
		g.host.meter.countSent(b.Samples, n)
	}
	return err
}

var errLoops = errors.New("too many concurrent loops of one trainer over a Stream")

// readerFor returns the reader for the loop of a frameRead, which it creates for the first
// request of the loop, and nil for other requests. The guest closes the reader. wanted reports
// whether the request has not been cancelled. The error is errLoops if the trainer has too many
// loops.
func (g *guest) readerFor(f frame) (r maker.Reader, wanted bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.dropped[f.ID] || f.Kind != frameRead {
		return nil, !g.dropped[f.ID], nil
	}
	if r = g.loops[f.Loop]; r == nil {
		if len(g.loops) >= openEpochs {
			return nil, true, errLoops
		}
		r = g.host.maker.Reader()
		g.loops[f.Loop] = r
	}
	return r, true, nil
}

// wantsRequest reports whether a request has not been cancelled.
func (g *guest) wantsRequest(f frame) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.dropped[f.ID]
}

// requestedBatch returns the requested batch, from the cache if possible. r is the reader for a
// frameRead. If err is nil, the caller must call release after it has sent the batch.
func (h *Host) requestedBatch(ctx context.Context, f frame, r maker.Reader) (b maker.Batch, release func(), err error) {
	if f.Kind != frameAsk || h.opts.Cache == 0 {
		b, err = h.makeBatch(ctx, f, r)
		return b, b.Close, err
	}
	e, hit, err := h.cache.get(ctx, batchKey{f.Epoch, f.Number},
		func() (maker.Batch, error) { return h.makeBatch(h.ctx, f, nil) })
	if err != nil {
		return b, nil, err
	}
	if hit {
		h.meter.countHit()
	}
	return e.batch, func() { h.cache.release(e) }, nil
}

// makeBatch makes a batch, which the caller must close. r is the reader for a frameRead, and may
// be nil otherwise. If shared memory is full, makeBatch clears the cache and retries until
// Patience expires, because batches that are being sent free memory. Then the error wraps
// [shm.ErrNoSpace].
func (h *Host) makeBatch(ctx context.Context, f frame, r maker.Reader) (b maker.Batch, err error) {
	for end := time.Now().Add(h.opts.Patience); ; {
		switch f.Kind {
		case frameGather:
			b, err = h.maker.Gather(ctx, f.Epoch, f.Indices)
		case frameRead:
			b, err = r.Read(ctx, f.Portion)
		default:
			b, err = h.maker.Batch(ctx, f.Epoch, f.Number)
		}
		if !errors.Is(err, shm.ErrNoSpace) || time.Now().After(end) {
			return b, err
		}
		if h.cache.clear(); h.meter.readHeld() == 0 && h.cache.isEmpty() {
			return b, err // there is nothing to wait for
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return b, context.Cause(ctx)
		}
	}
}
