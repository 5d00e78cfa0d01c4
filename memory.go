package shoal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	internal "github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/shm"
)

// SetMemory gives the shared memory of this program other limits than the default ones. Call it
// before Main. Workers inherit the memory of the process that starts them, so in a worker SetMemory
// does nothing. It returns ErrMemoryInUse if this process has shared memory already.
func SetMemory(o shm.Options) error {
	if IsWorker() {
		return nil
	}
	d, err := internal.New(o)
	if err != nil {
		return fmt.Errorf("shoal: set memory: %w", err)
	}
	if !internal.SetFirst(d) {
		d.Close()
		return ErrMemoryInUse
	}
	return nil
}

// MemoryStats returns the figures of the memory that this process shares with others, in bytes and
// blocks. They are zero as long as no memory was shared.
func MemoryStats() shm.Stats {
	if d := internal.Current(); d != nil {
		return d.Stats()
	}
	return shm.Stats{}
}

// Inspect asks which processes hold how much shared memory. It asks all programs of this user, in
// this network namespace, that have a process started by Shoal. It maps no memory. The reports are
// those of the programs that answer within five seconds and before ctx ends. The error says why
// others do not answer.
func Inspect(ctx context.Context) ([]shm.Report, error) {
	addresses, err := internal.Domains()
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var reports []shm.Report
	var failures []error
	var asked sync.WaitGroup
	for _, addr := range addresses {
		asked.Go(func() {
			r, err := internal.Inspect(ctx, addr)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failures = append(failures, fmt.Errorf("inspect %s: %w", addr, err))
				return
			}
			reports = append(reports, r)
		})
	}
	asked.Wait()
	slices.SortFunc(reports, func(a, b shm.Report) int { return cmp.Compare(a.PID, b.PID) })
	return reports, errors.Join(failures...)
}
