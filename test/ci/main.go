// Command ci runs the steps of .ci/steps that the commit at HEAD selects, in parallel where they
// allow it, and prints a table with their durations. It imports only the standard library, so that
// a new machine compiles it within seconds. It must be run in the root of a clone.
//
//	ci                run the selected steps; CI_ALL=1 selects every step, and with CI_KEEP_GOING=1 a
//	                  failure stops no other step
//	ci list           print the selected steps and the reason for each, and run nothing
//	ci mark COMMIT    prepare HEAD for landing after COMMIT, the previous landing
//	ci race SET       print the packages of one set for the race detector: always, 1, 2 or 3
//
// The exit status is 1 if a step fails.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := command(ctx, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "ci:", err)
		os.Exit(1)
	}
}

// command executes one command line: args are list, mark COMMIT, race SET, or none to run the
// steps. The working directory must be the root of a clone. It returns an error if a step fails
// or ctx ends.
func command(ctx context.Context, args []string) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(root, tablePath))
	if err != nil {
		return err
	}
	t, err := parseTable(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", tablePath, err)
	}
	repo := repository(root)
	now := turnOf(repo)
	if os.Getenv("CI_ALL") == "1" {
		now = turn{why: "everything: CI_ALL=1", all: true}
	}
	switch line := strings.Join(args, " "); {
	case line == "":
		return t.runAll(ctx, root, repo, now)
	case line == "list":
		return t.list(repo, now)
	case len(args) == 2 && args[0] == "race":
		return t.printRace(root, repo, now, args[1])
	case len(args) == 2 && args[0] == "mark":
		m, err := repo.setMark(args[1])
		if err == nil {
			fmt.Printf("HEAD is marked: group %d runs, and what changed since %s\n", m.group, m.since)
		}
		return err
	}
	return fmt.Errorf("%q: want list, mark COMMIT, race SET, or nothing", args)
}

func (n turn) String() string {
	if n.everything() {
		return n.why
	}
	return fmt.Sprintf("group %d, and what changed since the landing of %.12s", n.group, n.since)
}

func (t *table) list(repo repository, now turn) error {
	reasons, err := t.choose(repo, now)
	if err != nil {
		return err
	}
	fmt.Println(now)
	for _, s := range t.steps {
		fmt.Printf("%-16s %-8s %s\n", s.name, groupName(s.group), reasons[s.name])
	}
	return nil
}

func (t *table) printRace(root string, repo repository, now turn, set string) error {
	all, err := packages(root)
	if err != nil {
		return err
	}
	var changed []string
	if !now.everything() {
		if changed, err = repo.files(now.since); err != nil {
			return err
		}
	}
	for _, p := range t.raceSet(set, all, changed) {
		fmt.Println(p)
	}
	return nil
}

func (t *table) runAll(ctx context.Context, root string, repo repository, now turn) error {
	reasons, err := t.choose(repo, now)
	if err != nil {
		return err
	}
	var selected []step
	for _, s := range t.steps {
		if reasons[s.name] != "" {
			selected = append(selected, s)
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	logs := filepath.Join(root, "build", "ci", "logs")
	if err := os.MkdirAll(logs, 0o777); err != nil {
		return err
	}
	r := newRunner(selected, logs, []string{"SHOAL_CI=" + self}, os.Stdout)
	r.printf("%v: %d of %d steps\n", now, len(selected), len(t.steps))
	r.keepGoing = os.Getenv("CI_KEEP_GOING") == "1"
	ok := r.run(ctx)
	r.summary(t.steps, reasons)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("stopped: %w", context.Cause(ctx))
	case !ok:
		return fmt.Errorf("a step failed")
	}
	return nil
}
