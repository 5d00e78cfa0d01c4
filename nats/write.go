package nats

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// remembered is how long the broker deduplicates message ids. A later retry could
	// store a value twice, so a write must give up before it ends, after patience.
	remembered = 2 * time.Minute
	patience   = remembered * 3 / 4

	leastPause = 5 * time.Millisecond
	mostPause  = 250 * time.Millisecond

	// Limits of pipelined writes: messages and bytes without a response.
	pipelined      = 256
	pipelinedBytes = 8 << 20

	codeUnavailable = 10008 // the cluster is electing a leader
	codeInProcess   = 10158 // an earlier attempt with the same id is still being processed
)

// A stored is the response of a stream to a publish.
type stored struct {
	Sequence  uint64              `json:"seq"`
	Duplicate bool                `json:"duplicate"`
	Error     *jetstream.APIError `json:"error"`
}

// read parses the response b into s. The fast path handles the common response, which contains
// only a stream name and a sequence number.
func (s *stored) read(b []byte) error {
	_, after, ok := bytes.Cut(b, []byte(`"seq":`))
	if end := bytes.IndexAny(after, ",}"); ok && end > 0 && !bytes.Contains(b, []byte(`"error"`)) &&
		!bytes.Contains(b, []byte(`"duplicate"`)) {
		n, err := strconv.ParseUint(string(bytes.TrimSpace(after[:end])), 10, 64)
		if err == nil {
			s.Sequence = n
			return nil
		}
	}
	return json.Unmarshal(b, s)
}

// A write is a message that is being published to a stream. Its id makes retries idempotent.
type write struct {
	m     *client.Msg
	sent  *answer   // response of the current attempt
	since time.Time // time of the first attempt without a response that may have succeeded
}

func newWrite(subject, id string, data []byte) *write {
	m := &client.Msg{Subject: subject, Data: data}
	if id != "" {
		m.Header = client.Header{client.MsgIdHdr: {id}}
	}
	return &write{m: m}
}

// startWrite sends the first attempt if there is a connection. The caller must call
// [Conn.finishWrite], which sends it otherwise.
func (c *Conn) startWrite(w *write) { w.sent, _ = c.sendRequest(w.m) }

// finishWrite waits until the message is stored, and retries after disconnections until ctx ends
// or the broker has been unreachable for too long. It returns a [*jetstream.APIError] if the
// broker rejects the message, and an error that wraps [ErrUncertain] if the message may be
// stored. If no stream accepts the message, finishWrite calls gone, which must return the
// reason, or nil to wait for a leader.
func (c *Conn) finishWrite(ctx context.Context, w *write, gone func(context.Context) error) (s stored, err error) {
	attempt := time.Now()
	var alone silence // while no stream accepts it
	for pause := leastPause; ; pause = min(2*pause, mostPause) {
		session := c.sessionDone()
		if w.sent == nil {
			if err = c.awaitConnection(ctx); err != nil {
				return s, w.wrapUncertain(err)
			}
			attempt = time.Now()
			w.sent, err = c.sendRequest(w.m)
		}
		if err == nil {
			var m *client.Msg
			if m, err = c.awaitResponse(ctx, w.sent); err == nil {
				err = s.read(m.Data)
			}
		}
		w.sent = nil
		code := jetstream.ErrorCode(0)
		if err == nil && s.Error != nil {
			code = s.Error.ErrorCode
		}
		switch {
		case err == nil && code != codeUnavailable && code != codeInProcess:
			c.recordResponse()
		case !isClosed(session) && ctx.Err() == nil:
			c.recordSilence()
		}
		switch {
		case err == nil && s.Error == nil:
			return s, nil
		case err == nil && code != codeUnavailable && code != codeInProcess:
			return s, s.Error
		case code == codeUnavailable, isAny(client.ErrReconnectBufExceeded, client.ErrConnectionReconnecting)(err):
			s = stored{} // definitely not stored
		case errors.Is(err, client.ErrNoResponders):
			if e := gone(ctx); e != nil {
				return s, w.wrapUncertain(e)
			}
			if alone.recordFailure(c, session) > 4*c.timeout {
				return s, w.wrapUncertain(wrapBoth(ErrUnreachable, err))
			}
			if err := sleep(ctx, pause); err != nil {
				return s, w.wrapUncertain(err)
			}
			continue
		case errors.Is(err, client.ErrMaxPayload), errors.Is(err, client.ErrConnectionClosed) && c.closed.Load():
			return s, w.wrapUncertain(err)
		default:
			if err == nil {
				err, s = s.Error, stored{}
			}
			if w.since.IsZero() {
				w.since = attempt
			}
			if ctx.Err() != nil || time.Since(w.since) > patience {
				return s, w.wrapUncertain(err)
			}
		}
		if err := sleep(ctx, pause); err != nil {
			return s, w.wrapUncertain(err)
		}
		if !c.hasLeft(session) {
			alone = silence{} // a stream exists, or this is unknown
		}
	}
}

// wrapUncertain wraps err with [ErrUncertain] if the write may have succeeded.
func (w *write) wrapUncertain(err error) error {
	if w.since.IsZero() {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUncertain, err)
}

// isFull reports whether a stream reached its limit of messages or bytes.
func isFull(err error) bool {
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && api.ErrorCode == codeStoreFailed && strings.HasPrefix(api.Description, "maximum ")
}

// sleep waits for d, or returns the cause of ctx if it ends earlier.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// contextError returns the error of an operation that ctx ended. If its deadline passed, the error
// wraps state too, unless that is nil.
func contextError(ctx context.Context, op string, state error) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		err = cause
	} else {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	if state != nil && errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("nats: %s: %w: %w", op, state, err)
	}
	return fmt.Errorf("nats: %s: %w", op, err)
}
