package pystack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// Spy returns the stacks of a process as py-spy reports them. It returns an error if that program
// is not on the PATH or fails. py-spy knows more interpreters than [Read], and may have a
// permission that this process lacks. It does not stop the process.
//
// https://github.com/benfred/py-spy/blob/v0.4.0/src/stack_trace.rs
func Spy(ctx context.Context, pid int) ([]Stack, error) {
	program, err := exec.LookPath("py-spy")
	if err != nil {
		return nil, err
	}
	args := []string{"dump", "--nonblocking", "--json", "--pid", strconv.Itoa(pid)}
	out, err := exec.CommandContext(ctx, program, args...).Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			line, _, _ := strings.Cut(strings.TrimSpace(string(exit.Stderr)), "\n")
			err = fmt.Errorf("%w: %s", err, line)
		}
		return nil, fmt.Errorf("py-spy dump: %w", err)
	}
	var threads []struct {
		ID     int    `json:"os_thread_id"` // null before CPython 3.11
		Name   string `json:"thread_name"`
		Frames []struct {
			Name     string `json:"name"`
			Filename string `json:"filename"`
			Line     int    `json:"line"`
		} `json:"frames"`
	}
	if err := json.Unmarshal(out, &threads); err != nil {
		return nil, fmt.Errorf("parse the output of py-spy: %w", err)
	}
	stacks := make([]Stack, len(threads))
	for i, t := range threads {
		if stacks[i].TID = t.ID; t.ID == 0 && t.Name == "MainThread" {
			stacks[i].TID = pid
		}
		for _, f := range t.Frames {
			stacks[i].Frames = append(stacks[i].Frames, Frame{Function: f.Name, File: f.Filename, Line: f.Line})
		}
	}
	return stacks, nil
}
