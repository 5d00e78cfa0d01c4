package shoallog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/slogtest"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/shoallog"
	"github.com/shoal-mp/shoal/shoaltest"
)

// logged keeps what a process logs. Its handler is made before the process knows its job.
var (
	logged bytes.Buffer
	log    = slog.New(shoallog.NewHandler(slog.NewJSONHandler(&logged, nil)))
)

func TestMain(m *testing.M) {
	log.Info("early") // in a worker as well
	shoaltest.TestMain(m)
}

var logging = shoal.Register("logging", func(ctx context.Context, rank int, to *ipc.Sender[string]) error {
	logged.Reset()
	log.Info("before") // by the handler that has logged "early"
	log.With("a", 1).WithGroup("g").Info("hello", "b", rank)
	return to.Put(ctx, logged.String())
})

func TestRecordsOfWorkersHaveTheirRank(t *testing.T) {
	shoaltest.NoLeaks(t)
	q, err := ipc.NewQueue[string](4)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	if err := shoal.Warm(t.Context(), 2, shoal.Options{}); err != nil { // their job comes after their start
		t.Fatal(err)
	}
	defer shoal.Warm(context.Background(), 0, shoal.Options{})
	g := shoal.NewGroup(t.Context(), shoal.Options{Start: shoal.WarmStart})
	defer g.Close()
	const workers = 3
	for range workers {
		logging.Go(g, q.Sender())
	}
	ranks := make(map[int]bool)
	for range workers {
		text, err := q.Get(t.Context())
		before, text, _ := strings.Cut(text, "\n")
		if !strings.Contains(before, `"function":"logging","rank":`) {
			t.Errorf("%s", before)
		}
		var r struct {
			Msg, Function string
			Rank, PID, A  int
			G             struct{ B int }
		}
		if err := errors.Join(err, json.Unmarshal([]byte(text), &r)); err != nil {
			t.Fatal(err)
		}
		ranks[r.Rank] = true
		if r.Msg != "hello" || r.Function != "logging" || r.G.B != r.Rank || r.A != 1 || r.PID == os.Getpid() ||
			r.PID == 0 {
			t.Errorf("%s", text)
		}
	}
	if err := g.Wait(); err != nil || len(ranks) != workers {
		t.Errorf("ranks %v, %v", ranks, err)
	}
}

// It is a Handler as package slog wants one, but for the attributes that it adds.
func TestTheHandlerKeepsTheRules(t *testing.T) {
	var b bytes.Buffer
	slogtest.Run(t, func(*testing.T) slog.Handler {
		b.Reset()
		return shoallog.NewHandler(slog.NewJSONHandler(&b, nil))
	}, func(t *testing.T) map[string]any {
		var m map[string]any
		if err := json.Unmarshal(b.Bytes(), &m); err != nil {
			t.Fatal(err)
		}
		for key, want := range map[string]any{"function": "main", "rank": 0.0, "pid": float64(os.Getpid())} {
			if m[key] != want {
				t.Errorf("%s is %v, want %v: %s", key, m[key], want, b.String())
			}
			delete(m, key)
		}
		return m
	})
	quiet := shoallog.NewHandler(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if quiet.Enabled(t.Context(), slog.LevelInfo) || !quiet.Enabled(t.Context(), slog.LevelWarn) {
		t.Error("it does not ask the handler below for the level")
	}
}
