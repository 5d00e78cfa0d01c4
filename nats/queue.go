package nats

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/shoal-mp/shoal/internal/codec"
)

// A Queue is a persistent FIFO queue of values of type T, stored by a broker, for any number of
// senders and receivers on any machines. One receiver at a time holds a value, and the value leaves
// the queue when it is acknowledged. A redelivered value may arrive out of order.
//
// A queue and its values persist until [Conn.DeleteQueue], even after all processes have closed it.
// Its methods may be called from several goroutines. The zero Queue is closed.
type Queue[T any] struct {
	*work
	plan *codec.Plan[T]
}

// QueueOptions configure a queue. The first process that opens a queue creates it; a zero option
// then means the default. Processes that open an existing queue may leave options zero; other
// values must match the queue, or [OpenQueue] returns [ErrOptions].
type QueueOptions struct {
	// Capacity is the maximum number of stored values, including those delivered but not
	// acknowledged; default unlimited.
	Capacity int
	// MaxBytes limits the stored bytes of the values. It applies separately to values in single
	// messages and to values in chunks; default unlimited.
	MaxBytes int64
	// MaxDeliveries is the number of deliveries after which a value becomes a dead letter; default
	// 5.
	MaxDeliveries int
	// AckWait is the time without a heartbeat after which the values of a receiver are redelivered;
	// default 30 s, minimum 100 ms. Heartbeats are sent in the background, so AckWait does not
	// limit the time to process a value.
	AckWait time.Duration
	// History is how long acknowledged values can be replayed; default none. If the queue
	// is full, acknowledged values are deleted sooner. Values that are not acknowledged are always
	// kept.
	History time.Duration
	// Replicas is the number of brokers in a cluster that store each value: 1, 3 or 5; default 3 in
	// a cluster. A Put returns when a majority has stored it.
	Replicas int
	// InMemory makes the brokers store the values in memory instead of on disk.
	InMemory bool
	// Prefetch is the number of values that this process requests in advance. They are not
	// available to other receivers meanwhile, and each counts as a delivery if the process is
	// killed. Prefetch applies to this process only, so it may differ between processes.
	Prefetch int
}

const (
	defaultDeliveries = 5
	defaultAckWait    = 30 * time.Second
	leastAckWait      = 100 * time.Millisecond
	mostTaken         = 1 << 16 // maximum number of unacknowledged deliveries
	consumerName      = "consumers"
	mostName          = 64

	typeKey       = "shoal.type"
	deliveriesKey = "shoal.deliveries"
	historyKey    = "shoal.history"
)

// work is the part of a queue that does not depend on the element type.
type work struct {
	c        *Conn
	name     string
	config   jetstream.StreamConfig
	consumer jetstream.Consumer
	large    chunks
	dead     jetstream.StreamConfig
	most     int // maximum number of deliveries
	ackWait  time.Duration
	history  time.Duration
	prefetch int
	unique   string // prefix of ids
	ids      atomic.Uint64

	notes    *client.Subscription
	closing  chan struct{} // closed by Close
	finished chan struct{} // closed when any process calls Finish
	resting  sync.WaitGroup

	listening atomic.Bool
	heardFrom atomic.Int64 // send time of the confirmed flush before the last; see probeDelivery
	heardLast int64        // send time of the last confirmed flush; used by probeDelivery only

	mu       sync.Mutex
	heard    <-chan struct{} // session in which no announcement of Finish can have been missed
	held     map[*held]struct{}
	idle     []*pull
	ahead    *pull // shared pull of Prefetch
	asked    int   // values that ahead may still deliver
	getters  int   // number of calls waiting in receivePrefetched
	waiting  int   // number of calls waiting in receiveMessage
	lastGet  time.Time
	lastTrim time.Time
	closed   bool
}

func queueStream(name string) string { return "SHOAL_Q_" + name }
func chunkStream(name string) string { return "SHOAL_C_" + name }
func deadStream(name string) string  { return "SHOAL_D_" + name }

// valueSubject returns the subject of values that fit into one message. The next functions
// return the subjects of the queue's other messages.
func (w *work) valueSubject() string          { return "shoal.q." + w.name + ".value" }
func (w *work) largeSubject(id string) string { return "shoal.q." + w.name + ".large." + id }
func (w *work) chunkPrefix() string           { return "shoal.c." + w.name }
func (w *work) deadSubject(seq uint64, id string) string {
	return "shoal.d." + w.name + "." + strconv.FormatUint(seq, 10) + "." + id
}
func (w *work) noteSubject() string { return "shoal.note." + w.name }

// isFinished reports whether a stream belongs to a finished queue. A finished queue has one
// subject, which no sender uses.
func isFinished(c jetstream.StreamConfig) bool {
	return len(c.Subjects) == 1
}

func liveSubjects(name string) []string {
	return []string{"shoal.q." + name + ".value", "shoal.q." + name + ".large.*"}
}

func finishedSubjects(name string) []string { return []string{"shoal.finished." + name} }

// OpenQueue opens the named queue and creates it if it does not exist. The name must have 1 to 64
// letters, digits, "-" and "_". The caller must close the queue with [Queue.Close].
//
// The error wraps [wire.ErrType] if T cannot be encoded, or [ErrOptions] if the name or an
// option is invalid. Errors of the broker are [*HostError] and wrap [ErrOptions], [ErrType] or
// [ErrStorage] where these apply.
func OpenQueue[T any](ctx context.Context, c *Conn, name string, opts QueueOptions) (*Queue[T], error) {
	plan, err := codec.PlanOf[T]()
	if err == nil && (!isToken(name) || len(name) > mostName) {
		err = fmt.Errorf("%[1]w: name %[3]q, want 1 to %[2]d letters, digits, - and _", ErrOptions, mostName, name)
	}
	if err != nil {
		return nil, fmt.Errorf("nats: open queue: %w", err)
	}
	w := &work{c: c, name: name, closing: make(chan struct{}), finished: make(chan struct{}),
		held: make(map[*held]struct{}), unique: nuid.Next(), prefetch: opts.Prefetch}
	if err := w.open(ctx, codec.FullName(reflect.TypeFor[T]()), opts); err != nil {
		return nil, hostError("open queue "+name, c.Host(), err)
	}
	return &Queue[T]{w, plan}, nil
}

// check returns [ErrOptions] if an option is out of range.
func (o QueueOptions) check() error {
	switch {
	case o.Capacity < 0, o.MaxBytes < 0, o.MaxDeliveries < 0, o.History < 0, o.Replicas < 0, o.Prefetch < 0:
		return fmt.Errorf("%w: Capacity, MaxBytes, MaxDeliveries, History, Replicas or Prefetch is negative, want "+
			"0 or more", ErrOptions)
	case o.AckWait != 0 && o.AckWait < leastAckWait:
		return fmt.Errorf("%w: AckWait %v, want at least %v", ErrOptions, o.AckWait, leastAckWait)
	case o.Prefetch > pullMost/2:
		return fmt.Errorf("%w: Prefetch %d, want at most %d", ErrOptions, o.Prefetch, pullMost/2)
	case o.Replicas > 5 || o.Replicas != 0 && o.Replicas%2 == 0:
		return fmt.Errorf("%w: Replicas %d, want 1, 3 or 5", ErrOptions, o.Replicas)
	}
	return nil
}

// streamConfig returns the stream configuration of a new queue.
func (o QueueOptions) streamConfig(c *Conn, name, elem string) jetstream.StreamConfig {
	s := jetstream.StreamConfig{
		Name: queueStream(name), Subjects: liveSubjects(name), Description: "queue " + name + " of " + elem,
		Retention: jetstream.WorkQueuePolicy, Discard: jetstream.DiscardNew, MaxMsgs: -1, MaxBytes: -1,
		Duplicates: remembered, AllowDirect: true, Replicas: c.replicaCount(o.Replicas),
		Metadata: map[string]string{typeKey: elem, deliveriesKey: strconv.Itoa(defaultDeliveries)},
	}
	if o.Capacity > 0 {
		s.MaxMsgs = int64(o.Capacity)
	}
	if o.MaxBytes > 0 {
		s.MaxBytes = o.MaxBytes
	}
	if o.MaxDeliveries > 0 {
		s.Metadata[deliveriesKey] = strconv.Itoa(o.MaxDeliveries)
	}
	if o.History > 0 {
		s.Retention, s.Metadata[historyKey] = jetstream.LimitsPolicy, o.History.String()
	}
	if o.InMemory {
		s.Storage = jetstream.MemoryStorage
	}
	return s
}

// replicaCount returns the replica count for a requested count n, or the default if n is 0: 3 in
// a cluster, and otherwise 1.
func (c *Conn) replicaCount(n int) int {
	switch {
	case n > 0:
		return n
	case c.nc.ConnectedClusterName() != "":
		return 3
	}
	return 1
}

// checkStream returns [ErrOptions] if a nonzero option differs from an existing queue, and
// [ErrType] if the element type differs.
func (o QueueOptions) checkStream(s jetstream.StreamConfig, elem string) error {
	had, ours := s.Metadata[typeKey]
	if !ours {
		return fmt.Errorf("%w: stream %s was not created by this package", ErrOptions, s.Name)
	}
	if had != elem {
		return fmt.Errorf("%w: got values of %s, want %s", ErrType, had, elem)
	}
	for _, c := range []struct {
		name      string
		has, want any
		asked     bool
	}{
		{"Capacity", max(s.MaxMsgs, 0), int64(o.Capacity), o.Capacity != 0},
		{"MaxBytes", max(s.MaxBytes, 0), o.MaxBytes, o.MaxBytes != 0},
		{"MaxDeliveries", s.Metadata[deliveriesKey], strconv.Itoa(o.MaxDeliveries), o.MaxDeliveries != 0},
		{"History", s.Metadata[historyKey], o.History.String(), o.History != 0},
		{"Replicas", s.Replicas, o.Replicas, o.Replicas != 0},
		{"InMemory", s.Storage == jetstream.MemoryStorage, o.InMemory, o.InMemory},
	} {
		if c.asked && c.has != c.want {
			return fmt.Errorf("%w: the existing queue has %s %v, want %v", ErrOptions, c.name, c.has, c.want)
		}
	}
	return nil
}

// openStream returns the stream of that name and creates it if it does not exist. The caller must
// check the configuration, because an existing stream may have another one.
func (c *Conn) openStream(ctx context.Context, config jetstream.StreamConfig) (jetstream.Stream, error) {
	s, err := c.js.Stream(ctx, config.Name)
	if !errors.Is(err, jetstream.ErrStreamNotFound) {
		return s, err
	}
	s, err = c.js.CreateStream(ctx, config)
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // created meanwhile
		return c.js.Stream(ctx, config.Name)
	}
	return s, err
}

func (w *work) open(ctx context.Context, elem string, opts QueueOptions) error {
	if err := opts.check(); err != nil {
		return err
	}
	if err := w.c.awaitConnection(ctx); err != nil {
		return err
	}
	s, err := retryRequest(ctx, w.c, func(ctx context.Context) (jetstream.Stream, error) {
		return w.c.openStream(ctx, opts.streamConfig(w.c, w.name, elem))
	})
	if err != nil {
		return err
	}
	w.config = s.CachedInfo().Config
	if err := opts.checkStream(w.config, elem); err != nil {
		return err
	}
	w.most, err = strconv.Atoi(w.config.Metadata[deliveriesKey])
	if err != nil {
		return fmt.Errorf("%w: %w", ErrOptions, err)
	}
	if h := w.config.Metadata[historyKey]; h != "" {
		if w.history, err = time.ParseDuration(h); err != nil {
			return fmt.Errorf("%w: %w", ErrOptions, err)
		}
	}
	if isFinished(w.config) {
		close(w.finished)
	}
	beside := jetstream.StreamConfig{Storage: w.config.Storage, Replicas: w.config.Replicas, MaxMsgsPerSubject: 1,
		MaxMsgs: -1, MaxBytes: w.config.MaxBytes, AllowDirect: true}
	k := beside
	k.Name, k.Subjects, k.Discard = chunkStream(w.name), []string{w.chunkPrefix() + ".>"}, jetstream.DiscardNew
	k.Description = "large values of queue " + w.name
	w.large = chunks{w.c, k.Name, k}
	w.dead = beside
	w.dead.Name, w.dead.Subjects = deadStream(w.name), []string{"shoal.d." + w.name + ".>"}
	w.dead.Description, w.dead.MaxBytes = "dead letters of queue "+w.name, -1
	if err := w.openConsumer(ctx, s, opts); err != nil {
		return err
	}
	if err := w.large.sweepUnreferenced(ctx, w.chunkPrefix()+".*", w.referenceChecker(ctx)); err != nil {
		return err
	}
	w.notes, err = w.c.nc.Subscribe(w.noteSubject(), func(*client.Msg) { w.markFinished() })
	if err != nil {
		return err
	}
	w.resting.Add(1)
	go w.sendHeartbeats()
	return nil
}

func (w *work) openConsumer(ctx context.Context, s jetstream.Stream, opts QueueOptions) error {
	config := jetstream.ConsumerConfig{Durable: consumerName, AckPolicy: jetstream.AckExplicitPolicy,
		AckWait: opts.AckWait, MaxDeliver: -1, MaxAckPending: mostTaken, MaxWaiting: mostTaken}
	if config.AckWait == 0 {
		config.AckWait = defaultAckWait
	}
	k, err := retryRequest(ctx, w.c, func(ctx context.Context) (jetstream.Consumer, error) {
		k, err := s.Consumer(ctx, consumerName)
		if errors.Is(err, jetstream.ErrConsumerNotFound) {
			if k, err = s.CreateConsumer(ctx, config); errors.Is(err, jetstream.ErrConsumerExists) {
				k, err = s.Consumer(ctx, consumerName)
			}
		}
		return k, err
	})
	if err != nil {
		return err
	}
	w.consumer, w.ackWait = k, k.CachedInfo().Config.AckWait
	if opts.AckWait != 0 && opts.AckWait != w.ackWait {
		return fmt.Errorf("%w: the existing queue has AckWait %v, want %v", ErrOptions, w.ackWait, opts.AckWait)
	}
	return nil
}

// referenceChecker returns a function that reports whether the queue or its dead letters
// reference the chunks of an id. It ignores the prefix, and returns true with an error.
func (w *work) referenceChecker(ctx context.Context) func(prefix, id string) (bool, error) {
	return func(_, id string) (bool, error) {
		if there, err := w.c.countSubjects(ctx, w.config.Name, w.largeSubject(id)); len(there) > 0 || err != nil {
			return true, err
		}
		for _, err := range w.c.scan(ctx, w.dead.Name,
			scanning{filter: "shoal.d." + w.name + ".*." + id, from: 1, batch: 1}) {
			return !errors.Is(err, client.ErrNoResponders), nil // no stream: no dead letter
		}
		return false, nil
	}
}

// newID returns a unique id.
func (w *work) newID() string { return w.unique + strconv.FormatUint(w.ids.Add(1), 36) }

// markFinished marks the queue as finished in this process.
func (w *work) markFinished() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !isClosed(w.finished) {
		close(w.finished)
	}
}

// Finish ends the queue for the senders of all machines: puts return [ErrClosed], and gets return
// it once all values are acknowledged. A queue stays finished until it is deleted.
func (q *Queue[T]) Finish(ctx context.Context) error { return q.finishQueue(ctx) }

// finishQueue removes the subjects of puts from the stream, and announces it to the other
// processes.
func (w *work) finishQueue(ctx context.Context) error {
	if err := w.checkOpen("finish"); err != nil {
		return err
	}
	config := w.config
	config.Subjects = finishedSubjects(w.name)
	_, err := retryRequest(ctx, w.c, func(ctx context.Context) (jetstream.Stream, error) {
		return w.c.js.UpdateStream(ctx, config)
	})
	if err != nil {
		return hostError("finish queue "+w.name, w.c.Host(), err)
	}
	w.markFinished()
	_, err = retryRequest(ctx, w.c, func(ctx context.Context) (struct{}, error) { // flush
		return struct{}{}, errors.Join(w.c.nc.Publish(w.noteSubject(), nil), w.c.nc.FlushWithContext(ctx))
	})
	return hostError("finish queue "+w.name, w.c.Host(), err)
}

// checkOpen returns an error that wraps [ErrClosed] and names the operation op if the queue or
// its connection is closed in this process.
func (w *work) checkOpen(op string) error {
	if w == nil || isClosed(w.closing) || w.c.closed.Load() {
		return fmt.Errorf("nats: %s: %w", op, ErrClosed)
	}
	return nil
}

// QueueStats are the counts of a queue at the broker.
type QueueStats struct {
	Waiting int   // values not delivered to any receiver
	Taken   int   // values delivered but not acknowledged
	Dead    int   // dead letters
	Bytes   int64 // total bytes, including dead letters and acknowledged values of the history
}

// Stats returns the current counts of the queue. It asks the broker.
func (q *Queue[T]) Stats(ctx context.Context) (QueueStats, error) { return q.stats(ctx) }

func (w *work) stats(ctx context.Context) (s QueueStats, err error) {
	if err := w.checkOpen("stats"); err != nil {
		return s, err
	}
	if s.Waiting, s.Taken, err = w.countValues(ctx); err != nil {
		return s, hostError("stats of queue "+w.name, w.c.Host(), err)
	}
	for _, name := range []string{w.config.Name, w.large.stream, w.dead.Name} {
		stream, err := w.c.lookupStream(ctx, name)
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			continue
		case err != nil:
			return s, hostError("stats of queue "+w.name, w.c.Host(), err)
		}
		state := stream.CachedInfo().State
		s.Bytes += int64(state.Bytes)
		if name == w.dead.Name {
			s.Dead = int(state.Msgs)
		}
	}
	return s, nil
}

// consumerInfo returns the state of the consumer.
func (w *work) consumerInfo(ctx context.Context) (*jetstream.ConsumerInfo, error) {
	return retryRequest(ctx, w.c, w.consumer.Info)
}

// countValues returns the number of values not yet delivered, and the number delivered but not
// yet acknowledged. The consumer's own pending count lags, so countValues subtracts its last
// delivered sequence number from the last one of the stream.
func (w *work) countValues(ctx context.Context) (waiting, taken int, err error) {
	s, err := w.c.lookupStream(ctx, w.config.Name)
	if err != nil {
		return 0, 0, err
	}
	info, err := w.consumerInfo(ctx)
	if err != nil {
		return 0, 0, err
	}
	last := s.CachedInfo().State.LastSeq
	return int(max(last, info.Delivered.Stream) - info.Delivered.Stream), info.NumAckPending, nil
}

// Len returns the number of values not delivered to any receiver. It asks the broker.
func (q *Queue[T]) Len(ctx context.Context) (int, error) { return q.length(ctx) }

func (w *work) length(ctx context.Context) (int, error) {
	if err := w.checkOpen("len"); err != nil {
		return 0, err
	}
	n, _, err := w.countValues(ctx)
	return n, hostError("length of queue "+w.name, w.c.Host(), err)
}

// Close closes the queue in this process. Values that the process received but did not acknowledge
// are redelivered immediately. Blocked operations return [ErrClosed]. Close is idempotent and
// always returns nil.
func (q *Queue[T]) Close() error { return q.closeQueue() }

func (w *work) closeQueue() error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return nil
	}
	w.closed = true
	close(w.closing)
	var back []*held
	for h := range w.held {
		back = append(back, h)
	}
	idle, ahead := w.idle, w.ahead
	w.idle, w.ahead = nil, nil
	w.mu.Unlock()
	for _, h := range back {
		w.nakMessage(h, 0)
	}
	for _, p := range idle {
		p.sub.Unsubscribe()
	}
	if ahead != nil {
		ahead.abandonRequest()
	}
	w.resting.Wait()
	w.notes.Unsubscribe()
	return nil
}

// DeleteQueue deletes a queue with all its values, for all processes. It returns nil if the queue
// does not exist.
func (c *Conn) DeleteQueue(ctx context.Context, name string) error {
	return hostError("delete queue "+name, c.Host(),
		c.deleteStreams(ctx, queueStream(name), chunkStream(name), deadStream(name)))
}
