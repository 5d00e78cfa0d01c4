// Command serve is an HTTP server that survives the death of its processes. Four workers compute
// with one shared copy of the weights while another process continually replaces them, and each
// process is killed with SIGKILL in turn. Clients send requests in the meantime: none must fail,
// and each answer must be computed with one complete version of the weights, never older than one
// that its client has seen.
//
//	go run ./examples/serve                        requests are accepted by the first process
//	go run ./examples/serve -accept                requests are accepted by the workers
//	go run ./examples/serve -addr 127.0.0.1:8080   serve until interrupted
//
// The first form passes requests to a pool: a request of a killed worker is retried by another one,
// invisibly to the client. With -accept the workers share one inherited listener, and nothing is
// between them and the clients. A connection then dies with its worker, so the client must repeat
// the request, as a load balancer does. Connections are never refused, because the listener stays
// open. In both forms the server ends with the first process.
//
// Without -addr it prints the numbers of killed processes, versions, and failed, wrong and repeated
// requests. With -addr it prints a URL; the answers contain the process IDs, so that users can kill
// them.
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

// again restarts killed processes. A replacement gets the same argument, an ipc.Latest, and loads
// the newest weights from it.
var again = shoal.Restart{Max: -1, Backoff: time.Millisecond, MaxBackoff: 20 * time.Millisecond}

func main() { shoal.Main(run) }

func run(ctx context.Context) error {
	flag.Parse()
	weights, err := ipc.NewLatest(Weights{})
	if err != nil {
		return err
	}
	defer weights.Close()
	if err := storeVersion(ctx, weights, 1); err != nil {
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
		return runDrill(ctx, "http://"+listener.Addr().String())
	}
	fmt.Printf("http://%s/predict?x=0.5\n", listener.Addr())
	<-ctx.Done()
	return nil
}
