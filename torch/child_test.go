package torch

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/encoding/python"
)

// takeTools is a function that child.py starts. It uses one of each object of multiprocessing's.
func takeTools(ctx context.Context, args python.Tuple, kwargs *python.Dict) error {
	conn, work, done := args[0].(*Conn), args[1].(Queue), args[2].(Queue)
	lock, rlock, semaphore, bounded := args[3].(Semaphore), args[4].(Semaphore), args[5].(Semaphore),
		args[6].(Semaphore)
	event, cond := args[7].(Event), args[8].(Cond)
	err := withSemaphore(ctx, cond.(*condition).semaphore, func() error { // Python gives it up by waiting
		return errors.Join(cond.Notify(ctx, 1), cond.Wait(ctx))
	})
	scale, _ := kwargs.Get("scale")
	for err == nil {
		var v any
		if v, err = work.Get(ctx); v == nil {
			break
		}
		err = done.Put(ctx, v.(int64)*scale.(int64))
	}
	if err != nil {
		return err
	}
	if err := errors.Join(rlock.Acquire(ctx), event.Set(ctx), rlock.Release()); err != nil {
		return err
	}
	if err := errors.Join(lock.Acquire(ctx), semaphore.Acquire(ctx), bounded.Acquire(ctx), lock.Release()); err != nil {
		return err
	}
	if err := conn.Send(ctx, "taken"); err != nil {
		return err
	}
	_, err = conn.Recv(ctx) // when Python has looked
	return err
}

// TestChild_RunsFunctionsForPython lets an ordinary Python start this program, with objects that
// Python has made under either start method.
func TestChild_RunsFunctionsForPython(t *testing.T) {
	eachPython(t, func(t *testing.T, py peerPython) {
		cmd := exec.CommandContext(testContext(t), py.path, "testdata/child.py", os.Args[0])
		cmd.Env = pythonEnv()
		var stderr strings.Builder
		cmd.Stderr = &stderr
		b, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v\n%s", err, stderr.String())
		}
		var out struct {
			Spawn, Forkserver json.RawMessage
			Failed            int
		}
		if err := json.Unmarshal(b, &out); err != nil {
			t.Fatalf("%v: %s", err, b)
		}
		want := `{"notified": true, "scaled": [0, 3, 6, 9, 12], "set": true, "through the pipe": "taken", "left": [true, true, true, false, false], "exitcode": 0}`
		for method, got := range map[string]json.RawMessage{"spawn": out.Spawn, "forkserver": out.Forkserver} {
			if string(got) != want {
				t.Errorf("%s: %s, not %s", method, got, want)
			}
		}
		if text := stderr.String(); out.Failed != 1 || !strings.Contains(text, errFails.Error()) ||
			strings.Contains(text, "Traceback") || strings.Contains(text, "leaked") {
			t.Errorf("a function that fails ends with %d:\n%s", out.Failed, text)
		}
	})
}

// errFails is the error of a function that child.py starts.
var errFails = errors.New("this function fails")
