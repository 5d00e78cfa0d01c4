package shoal

import (
	"context"
	"fmt"

	internal "github.com/shoal-mp/shoal/internal/shm"
	"github.com/shoal-mp/shoal/shm"
)

// SetMemory gives the shared memory of this program other limits than the default ones. Call it
// before Main: workers inherit the memory of the process that starts them, so in a worker it does
// nothing. It returns ErrMemoryInUse where this process has shared memory already.
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
// blocks. They are zero as long as nothing was shared.
func MemoryStats() shm.Stats {
	if d := internal.Current(); d != nil {
		return d.Stats()
	}
	return shm.Stats{}
}

// Domains returns the addresses of the programs of this user whose memory can be inspected, sorted:
// those in this network namespace that have a process started by Shoal.
func Domains() ([]string, error) { return internal.Domains() }

// Inspect asks the program at addr, of this user, who holds how much shared memory. It maps
// nothing. It ends with ctx, or with an error when there is no answer for five seconds.
func Inspect(ctx context.Context, addr string) (shm.Report, error) {
	return internal.Inspect(ctx, addr)
}
