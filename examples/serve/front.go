package main

import (
	"context"
	"net"
	"net/http"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/pool"
)

// servePool starts an HTTP server on l in this process, which computes the answers in a pool.
// The caller must close l, which ends the server. It must also call end, which closes the pool
// and returns its error.
func servePool(ctx context.Context, l net.Listener, weights *ipc.Latest[Weights]) (end func() error, err error) {
	p, err := pool.New(ctx, pool.Options{
		Workers: workers, Process: shoal.Options{Threads: 1},
		Initializer: prepare(weights),
		Retries:     100, // a task of a killed worker is retried
	})
	if err != nil {
		return nil, err
	}
	server := http.Server{Handler: handler(func(ctx context.Context, x float32) (answer,
		error) {
		return predict.Apply(ctx, p, x)
	})}
	go server.Serve(l)
	return p.Close, nil
}

var served *ipc.Latest[Weights] // set in each worker of the pool

var prepare = pool.RegisterInit("weights", func(ctx context.Context, w *ipc.Latest[Weights]) error {
	served = w
	return nil
})

var predict = pool.Register("predict", func(ctx context.Context, x float32) (answer, error) {
	return infer(served, pool.Rank(ctx), x)
})
