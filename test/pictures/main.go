// Command pictures generates images of the documentation. It writes docs/howto/trace.svg from a
// traced run of shoal hogwild. It writes docs/hogwild.svg and docs/arena.svg from a run on a
// terminal: the final screen, and the response of the domain to arena.Inspect during training.
//
//	go run ./test/pictures
//
// The program script of util-linux must be installed, because it provides the terminal.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"github.com/shoal-mp/shoal/internal/arena"
)

const (
	columns = 96
	command = "shoal hogwild"
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	if err := draw(context.Background(), root); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

func draw(ctx context.Context, root string) error {
	bin, err := os.MkdirTemp("", "pictures")
	if err != nil {
		return err
	}
	defer os.RemoveAll(bin)
	build := exec.CommandContext(ctx, "go", "build", "-o", bin, "./cmd/shoal")
	build.Dir, build.Stderr = root, os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build the command: %w", err)
	}
	run := exec.CommandContext(ctx, "script", "-qec",
		fmt.Sprintf("stty cols %d rows 40; exec %s/%s", columns, bin, command), "/dev/null")
	run.Stderr = os.Stderr
	out, err := run.StdoutPipe()
	if err != nil {
		return err
	}
	if err := run.Start(); err != nil {
		return fmt.Errorf("run it on a terminal: %w", err)
	}
	last, titles, report, err := watch(ctx, out)
	if err := errors.Join(err, run.Wait()); err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	return errors.Join(drawTrace(ctx, root, bin),
		os.WriteFile(filepath.Join(root, "docs/hogwild.svg"), terminal("$ "+command, last), 0o644),
		os.WriteFile(filepath.Join(root, "docs/arena.svg"), drawArena(titles, report), 0o644))
}

// worker matches the text for a worker that has reported.
var worker = regexp.MustCompile(`(worker \d+), pid (\d+)`)

// watch reads out, the terminal output of a program, to its end. It returns the last screen, the
// titles of the program's workers by process ID, and the domain's report at the time when both
// workers had reported.
func watch(ctx context.Context, out io.Reader) (last []string, titles map[int]string, report arena.Report, err error) {
	var s screen
	for r := bufio.NewReader(out); ; {
		text, err := r.ReadString('\n')
		s.write(text)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, nil, report, err
		}
		found := worker.FindAllStringSubmatch(s.text(), -1)
		if titles != nil || len(found) < 2 {
			continue
		}
		titles = make(map[int]string)
		for _, f := range found {
			pid, _ := strconv.Atoi(f[2]) // digits
			titles[pid] = f[1]
		}
		if report, err = inspect(ctx, titles); err != nil {
			return nil, nil, report, err
		}
		titles[report.PID] = command
	}
	if titles == nil {
		return nil, nil, report, errors.New("its workers said nothing on the terminal")
	}
	return s.lines, titles, report, nil
}

// inspect returns the report of the domain that one of the given processes, by PID, holds. It
// returns an error if there is none.
func inspect(ctx context.Context, processes map[int]string) (arena.Report, error) {
	domains, err := arena.Domains()
	if err != nil {
		return arena.Report{}, err
	}
	for _, d := range domains {
		r, err := arena.Inspect(ctx, d)
		if err == nil && slices.ContainsFunc(r.Holders, func(h arena.Holder) bool { return processes[h.PID] != "" }) {
			return r, nil
		}
	}
	return arena.Report{}, fmt.Errorf("no domain has the processes %v", processes)
}
