package diagnose_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose"
)

// readTick returns the second update of the live view of a process.
func readTick(t *testing.T, pid int) diagnose.Tick {
	t.Helper()
	var out strings.Builder
	o := diagnose.LiveOptions{Every: 50 * time.Millisecond, Count: 2, JSON: true}
	if err := diagnose.Live(context.Background(), &out, o, pid); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var tick diagnose.Tick
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &tick); err != nil || len(lines) != 2 {
		t.Fatalf("%d updates, %v; want 2", len(lines), err)
	}
	return tick
}

func TestLive_ShowsDepthsOfQueues(t *testing.T) {
	python := plainPython(t)
	for _, method := range []string{"fork", "spawn"} {
		t.Run(method, func(t *testing.T) {
			_, pid, _ := start(t, python, "testdata/programs/queues.py", method)
			tick := readTick(t, pid)
			var got []string
			for _, q := range tick.Queues {
				if len(q.History) != 3 {
					t.Errorf("the timeline of %s is %q, want three updates", q.Name, q.History)
				}
				switch {
				case q.Kind == "queue":
					got = append(got, fmt.Sprintf("%d of %d", q.Items, q.Limit))
				case q.Bytes > 0 && q.Unknown != "":
					got = append(got, fmt.Sprintf("%s %d", q.Kind, q.Bytes/1000))
				}
			}
			for _, want := range []string{"5 of 16", "300 of 0", "pipe 1", "duplex pipe 2"} {
				if !slices.Contains(got, want) {
					t.Errorf("the queues are %q, want %q among them", got, want)
				}
			}
		})
	}
}

func TestLive_PrintsQueues(t *testing.T) {
	_, pid, _ := start(t, plainPython(t), "testdata/programs/queues.py", "fork")
	var out strings.Builder
	o := diagnose.LiveOptions{Every: 50 * time.Millisecond, Count: 1}
	if err := diagnose.Live(context.Background(), &out, o, pid); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"QUEUE", "5 of 16", "300", "1022 B", "queues: # full"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the view lacks %q:\n%s", want, out.String())
		}
	}
}

func TestLive_NamesQueuesOfADataLoader(t *testing.T) {
	for _, python := range pythons(t) {
		for _, method := range methods() {
			t.Run(environmentOf(python)+"/"+method, func(t *testing.T) {
				_, pid, _ := start(t, python, "testdata/programs/healthy.py", "compute_bound", method)
				tick := readTick(t, pid)
				indices := 0
				for _, q := range tick.Queues {
					if strings.HasPrefix(q.Use, "indices for worker ") {
						indices++
					}
					if q.Use == "batches of all workers" && (q.Items < 0 || q.Items > 4) {
						t.Errorf("%d batches wait, want at most 2 for each of 2 workers", q.Items)
					}
				}
				if indices != 2 {
					t.Errorf("%d queues of indices among %+v, want 2", indices, tick.Queues)
				}
			})
		}
	}
}
