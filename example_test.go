package shoal_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/shoal-mp/shoal"
)

var square = shoal.Register("square", func(ctx context.Context, rank int, in []float64) error {
	fmt.Println(in[rank] * in[rank])
	return nil
})

func ExampleFunc_Spawn() {
	// In a program this stands in the function given to shoal.Main.
	if err := square.Spawn(context.Background(), 3, []float64{2, 3, 4}); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// 4
	// 9
	// 16
}

var open = shoal.Register("open", func(ctx context.Context, rank int, name string) error {
	_, err := os.Open(name)
	return err
})

func ExampleProcessError() {
	err := open.Spawn(context.Background(), 1, "/no/such/file")
	fmt.Println(errors.Is(err, fs.ErrNotExist))
	if pe, ok := errors.AsType[*shoal.ProcessError](err); ok {
		fmt.Println(pe.Func, pe.Rank, pe.Err)
	}
	// Output:
	// true
	// open 0 open /no/such/file: no such file or directory
}

func ExampleGroup() {
	g := shoal.NewGroup(context.Background(), shoal.Options{Workers: 2, Output: shoal.PrefixRank})
	defer g.Close()
	for i := range 2 {
		square.Go(g, []float64{float64(10 * i), float64(20 * i)})
	}
	if err := g.Wait(); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// [square 0] 0
	// [square 1] 400
}

// The workers write their output to files.
func ExampleOutput() {
	dir, err := os.MkdirTemp("", "output")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	g := shoal.NewGroup(context.Background(), shoal.Options{Workers: 2, Output: shoal.Files, Dir: dir})
	defer g.Close()
	for i := range 2 {
		square.Go(g, []float64{float64(10 * i), float64(20 * i)})
	}
	if err := g.Wait(); err != nil {
		fmt.Println(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "square.1.out"))
	fmt.Print(string(text), err)
	// Output:
	// 400
	// <nil>
}

var say = shoal.Register("say", func(ctx context.Context, rank int, text string) error {
	f, err := shoal.File(ctx, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, text)
	return err
})

// A worker is given what is open here: a pipe, or what the method File of a listener returns.
func ExampleFile() {
	r, w, err := os.Pipe()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Close()
	g, err := say.Start(context.Background(), 2, "hello", shoal.Options{Files: []*os.File{w}})
	if err != nil {
		fmt.Println(err)
		return
	}
	w.Close() // each worker has one of its own
	io.Copy(os.Stdout, r)
	if err := g.Wait(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// hello
	// hello
}

var patient = shoal.Register("patient", func(ctx context.Context, rank int, _ struct{}) error {
	<-ctx.Done() // by Interrupt, or by the end of the group
	return nil
})

// A Process is asked, signalled and waited for by itself.
func ExampleProcess() {
	g := shoal.NewGroup(context.Background(), shoal.Options{Workers: 1})
	defer g.Close()
	p := patient.Go(g, struct{}{})
	fmt.Println(p.Name(), p.Rank(), p.Alive())
	if err := p.Kill(); err != nil {
		fmt.Println(err)
	}
	<-p.Done()
	status, ended := p.ExitCode()
	fmt.Println(p.Alive(), status, ended)
	// Output:
	// patient 0 true
	// false -9 true
}

var secondTime = shoal.Register("second time", func(_ context.Context, _ int, file string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		f.Close()
		return errors.New("this was the first time")
	}
	return nil
})

// A process that fails is started again, with its rank and its argument.
func ExampleRestart() {
	dir, err := os.MkdirTemp("", "restart")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	g := shoal.NewGroup(context.Background(), shoal.Options{Workers: 1,
		Restart: shoal.Restart{Max: 1, Backoff: time.Millisecond}})
	defer g.Close()
	p := secondTime.Go(g, dir+"/here")
	fmt.Println(g.Wait(), p.Restarts())
	// Output: <nil> 1
}

// The same functions run on goroutines, for instance to debug them.
func ExampleStartMethod() {
	for _, m := range []shoal.StartMethod{shoal.SpawnStart, shoal.WarmStart, shoal.GoroutineStart} {
		fmt.Println(m)
	}
	g := shoal.NewGroup(context.Background(), shoal.Options{Workers: 1, Start: shoal.GoroutineStart})
	defer g.Close()
	square.Go(g, []float64{5})
	fmt.Println(g.Wait())
	// Output:
	// spawn
	// warm
	// goroutine
	// 25
	// <nil>
}

// The function of Main returns this error to end the program with the status EX_TEMPFAIL.
func ExampleExitError() {
	var err error = fmt.Errorf("serve: %w", &shoal.ExitError{Status: 75, Err: errors.New("no broker yet")})
	e, _ := errors.AsType[*shoal.ExitError](err)
	fmt.Println(err, e.ExitCode())
	// Output: serve: no broker yet 75
}

// A program counts restarts, and ends when there are too many.
func ExampleRestartEvent() {
	ctx, cancel := context.WithCancelCause(context.Background())
	opts := shoal.Options{Restart: shoal.Restart{Max: -1}}
	opts.OnRestart = func(e shoal.RestartEvent) {
		if e.Attempt > 10 {
			cancel(fmt.Errorf("%s rank %d was started %d times: %w", e.Func, e.Rank, e.Attempt, e.Err))
		}
	}
	opts.OnRestart(shoal.RestartEvent{Func: "train", Rank: 3, Attempt: 11, Err: shoal.ErrExited})
	fmt.Println(context.Cause(ctx))
	// Output: train rank 3 was started 11 times: shoal: process ended early
}
