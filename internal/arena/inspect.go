package arena

import (
	"context"
	"fmt"
	"os"

	"github.com/shoal-mp/shoal/internal/arena/observe"
	"github.com/shoal-mp/shoal/internal/arena/socket"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

// Report returns the domain's counters, its bound names, and the bytes that each participant holds.
func (d *Domain) Report() Report {
	return Report{PID: os.Getpid(), Seat: d.seat, Stats: d.Stats(), Holders: d.topHolders(word.MaxParticipants),
		Names: d.Names()}
}

// Inspect asks the domain at addr for a [Report]. The domain must belong to this user, or the error
// wraps [ErrUser]. Inspect maps no memory and needs no token. It fails when ctx ends, or after five
// seconds without an answer.
func Inspect(ctx context.Context, addr string) (Report, error) {
	r, err := observe.RequestReport(ctx, addr, programLayout())
	if err != nil {
		return Report{}, fmt.Errorf("inspect domain at %s: %w", addr, err)
	}
	return r, nil
}

// Domains returns the sorted addresses of this user's domains in this network namespace that can be
// inspected or observed.
func Domains() ([]string, error) {
	all, err := socket.Addresses()
	if err != nil {
		return nil, fmt.Errorf("list domains: %w", err)
	}
	return all, nil
}
