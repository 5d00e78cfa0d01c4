package main

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"strconv"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
)

func handler(predict func(ctx context.Context, x float32) (answer, error)) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /predict", func(w http.ResponseWriter, r *http.Request) {
		x, err := strconv.ParseFloat(r.FormValue("x"), 32)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		a, err := predict(r.Context(), float32(x))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		json.NewEncoder(w).Encode(a)
	})
	return mux
}

// serveThere passes a copy of the listener, a TCP listener, to worker processes, which accept
// the connections. The caller must close l. It must also call end, which ends the workers and
// waits for them.
func serveThere(ctx context.Context, l net.Listener, weights *ipc.Latest[Weights]) (end func() error, err error) {
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	g, err := acceptAll.Start(ctx, workers, weights, shoal.Options{Threads: 1, Restart: again, Files: []*os.File{f}})
	if err != nil {
		return nil, err
	}
	return g.Close, nil
}

var acceptAll = shoal.Register("accept", func(ctx context.Context, rank int, weights *ipc.Latest[Weights]) error {
	f, err := shoal.File(ctx, 0)
	if err != nil {
		return err
	}
	listener, err := net.FileListener(f)
	if err != nil {
		return err
	}
	server := http.Server{Handler: handler(func(_ context.Context, x float32) (answer,
		error) {
		return infer(weights, rank, x)
	})}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
})
