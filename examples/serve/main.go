// Serve is the lesson of a server that outlives its processes: four workers compute with one copy
// of the weights, in shared memory, while another process replaces them all the time, and each is
// killed by SIGKILL in its turn. Clients send requests over HTTP meanwhile: none fails, and each
// answer is of one whole version of the weights, never of an older one than its client has seen.
//
// The first process has the connections, and a pool does the work: a request whose worker dies is
// done by another one, and its client notices nothing. With -accept the workers accept on one
// listener, which was passed to them, and nothing stands between them and their clients. Then a
// connection dies with its worker, so the client has to send its request again, as a load balancer
// does. It is never refused, since the listener lives on. Both end with the first process, which
// does little that can fail.
//
// With -addr it serves until it is interrupted, and a client that asks for /predict?x=0.5 reads
// whom to kill.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"net"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
)

var (
	accept = flag.Bool("accept", false, "the workers accept the connections themselves")
	addr   = flag.String("addr", "", "serve here, on 127.0.0.1:8080 say, until interrupted")
)

const workers = 4

// again is for processes that are killed. The process that takes the place of one has its argument,
// an ipc.Latest, and finds the newest weights there.
var again = shoal.Restart{Max: -1, Backoff: time.Millisecond, MaxBackoff: 20 * time.Millisecond}

func main() { shoal.Main(run) }

func run(ctx context.Context) error {
	flag.Parse()
	weights, err := ipc.NewLatest(Weights{})
	if err != nil {
		return err
	}
	defer weights.Close()
	if err := publish(ctx, weights, 1); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", cmp.Or(*addr, "127.0.0.1:0"))
	if err != nil {
		return err
	}
	defer listener.Close()
	serve := servePool
	if *accept {
		serve = serveThere
	}
	end, err := serve(ctx, listener, weights)
	if err != nil {
		return err
	}
	defer end()
	reloaders := shoal.NewGroup(ctx, shoal.Options{Threads: 1, Restart: again})
	defer reloaders.Close()
	reload.Go(reloaders, weights)
	if *addr == "" {
		return drill(ctx, "http://"+listener.Addr().String())
	}
	fmt.Printf("http://%s/predict?x=0.5\n", listener.Addr())
	<-ctx.Done()
	return nil
}
