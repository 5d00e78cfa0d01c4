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

// SetMemory sets the limits of this program's shared memory. It must be called before [Main].
// Workers inherit the memory of their parent, so in a worker SetMemory does nothing. It returns
// [ErrMemoryInUse] if this process already has shared memory.
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

// MemoryStats returns statistics of the shared memory of this process's domain, all processes
// together, in bytes and blocks. They are zero if no memory has been shared.
func MemoryStats() shm.Stats {
	if d := internal.Current(); d != nil {
		return d.Stats()
	}
	return shm.Stats{}
}

// Inspect returns reports of the shared memory used by all Shoal programs of this user in this
// network namespace. It maps no memory. It returns the reports of the programs that answer
// within five seconds and before ctx ends, and an error that describes why others do not.
// Reports are in order of process id. Both results may be non-empty.
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
