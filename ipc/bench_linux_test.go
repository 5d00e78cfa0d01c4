package ipc_test

import (
	"context"
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/test/testutil"
)

// BenchmarkPingPong is a round trip to another process and back.
func BenchmarkPingPong(b *testing.B) {
	d := shared(b)
	for _, n := range []int{10, 64 << 10} {
		b.Run(fmt.Sprint("bytes-", n), func(b *testing.B) {
			ctx := context.Background()
			conn, other, err := ipc.Pipe[[]byte, []byte]()
			testutil.NoError(b, err)
			cmd := echo.start(b, d, other)
			testutil.NoError(b, other.Close())
			v := make([]byte, n)
			b.ReportAllocs()
			for b.Loop() {
				testutil.NoError(b, conn.Send(ctx, v))
				_, err := conn.Recv(ctx)
				testutil.NoError(b, err)
			}
			testutil.NoError(b, conn.Close())
			testutil.NoError(b, cmd.Wait())
		})
	}
}

// BenchmarkBatchBetweenProcesses is what one of 64 numbers costs that another process gets.
func BenchmarkBatchBetweenProcesses(b *testing.B) {
	d := shared(b)
	ctx := context.Background()
	q := newQueue[int](b, 1024)
	done := newQueue[int](b, 1)
	cmd := counter.start(b, d, &counting{q.Receiver(), done.Sender(), b.N})
	in := make([]int, 64)
	b.ResetTimer()
	for i := 0; i < b.N; i += len(in) {
		n := min(len(in), b.N-i)
		_, err := q.PutN(ctx, in[:n])
		testutil.NoError(b, err)
	}
	_, err := done.Get(ctx)
	testutil.NoError(b, err)
	b.StopTimer()
	testutil.NoError(b, cmd.Wait())
}

type counting struct {
	In   *ipc.Receiver[int]
	Done *ipc.Sender[int]
	Most int
}

// counter gets so many numbers and says so.
var counter = newRole("counter", func(ctx context.Context, c *counting) error {
	defer c.In.Close()
	defer c.Done.Close()
	out := make([]int, 64)
	for got := 0; got < c.Most; {
		n, err := c.In.GetN(ctx, out)
		if err != nil {
			return err
		}
		got += n
	}
	return c.Done.Put(ctx, c.Most)
})

// BenchmarkBarrier is a turn of a barrier of so many processes, for each of them: by the clock, and
// the time of their processors.
func BenchmarkBarrier(b *testing.B) {
	d := shared(b)
	for _, n := range []int{1, 8, 32} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			barrier, err := ipc.NewBarrier(n + 1)
			testutil.NoError(b, err)
			defer barrier.Close()
			cmds := make([]*exec.Cmd, n)
			for i := range cmds {
				cmds[i] = turner.start(b, d, &turning{barrier, b.N})
			}
			_, err = barrier.Wait(b.Context()) // all are there
			testutil.NoError(b, err)
			b.ResetTimer()
			for range b.N {
				_, err := barrier.Wait(b.Context())
				testutil.NoError(b, err)
			}
			b.StopTimer()
			var used time.Duration
			for _, cmd := range cmds {
				testutil.NoError(b, cmd.Wait())
				used += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/process")
			b.ReportMetric(float64(used.Nanoseconds())/float64(b.N*n), "cpu-ns/process")
		})
	}
}

type turning struct {
	Barrier *ipc.Barrier
	Turns   int
}

// turner takes part in so many turns, and in the one in which all come.
var turner = newRole("turner", func(ctx context.Context, c *turning) error {
	defer c.Barrier.Close()
	for range c.Turns + 1 {
		if _, err := c.Barrier.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
})
