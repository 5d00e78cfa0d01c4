package observe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/internal/arena/socket"
	"github.com/shoal-mp/shoal/shm"
)

// Maximum sizes of the answers to requests, in bytes of JSON.
const (
	maxReport      = 1 << 20
	maxObservation = 8 << 20
)

// RequestReport asks the domain at addr for a report. It returns the errors of [socket.Request],
// and shm.ErrCorrupt if the answer is not a report.
func RequestReport(ctx context.Context, addr string, layout socket.Layout) (r shm.Report, err error) {
	err = request(ctx, addr, socket.WantInspect, layout, maxReport, &r, &r)
	return r, err
}

// RequestObservation asks the domain at addr for an observation. If the program there is too old to
// be observed, only Report is set. It returns the errors of [RequestReport].
func RequestObservation(ctx context.Context, addr string, layout socket.Layout) (o Observation, err error) {
	err = request(ctx, addr, socket.WantObserve, layout, maxObservation, &o, &o.Report)
	if errors.Is(err, socket.ErrSilent) {
		o = Observation{}
		o.Report, err = RequestReport(ctx, addr, layout)
	}
	return o, err
}

// request sends the request want and decodes the JSON answer into answer. most is the maximum size
// of the answer in bytes. report must point into answer. Every report names the process that made
// it, so an answer without a process ID is rejected. request returns the errors of
// [socket.Request], and [shm.ErrCorrupt] if the answer is not a report.
func request(ctx context.Context, addr string, want byte, layout socket.Layout, most int64, answer any,
	report *shm.Report) error {
	b, err := socket.Request(ctx, addr, want, layout, most)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, answer); err != nil {
		return fmt.Errorf("%w: %w", shm.ErrCorrupt, err)
	}
	if report.PID < 1 {
		return fmt.Errorf("%w: reply names no process", shm.ErrCorrupt)
	}
	return nil
}
