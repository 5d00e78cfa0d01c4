package ipc_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/shoal-mp/shoal/ipc"
)

// BenchmarkPingPong is a round trip to another process and back.
func BenchmarkPingPong(b *testing.B) {
	d := shared(b)
	for _, n := range []int{10, 64 << 10} {
		b.Run(fmt.Sprint("bytes-", n), func(b *testing.B) {
			ctx := context.Background()
			conn, other, err := ipc.Pipe[[]byte, []byte]()
			check(b, err)
			cmd := echo.start(b, d, other)
			check(b, other.Close())
			v := make([]byte, n)
			b.ReportAllocs()
			for b.Loop() {
				check(b, conn.Send(ctx, v))
				_, err := conn.Recv(ctx)
				check(b, err)
			}
			check(b, conn.Close())
			check(b, cmd.Wait())
		})
	}
}
