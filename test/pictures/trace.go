package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/shoal-mp/shoal/test/timeline"
)

// traced runs the command shoal in the directory bin with a trace and returns an SVG picture of
// it.
func traced(ctx context.Context, bin string) ([]byte, error) {
	path := filepath.Join(bin, "run.json")
	run := exec.CommandContext(ctx, filepath.Join(bin, "shoal"), "hogwild", "--json", "--trace", path)
	if out, err := run.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", run, err, out)
	}
	l, err := timeline.Read(path)
	if err != nil {
		return nil, err
	}
	return steps(l)
}

// colours maps span names to colours.
var colours = map[string]string{"batch wait": "#d9a441", "wait": "#d9a441", "forward": "#4f8fd0",
	"backward": "#2f6296", "step": "#4d9f6f", "report": "#a06cb4", "load": "#c9d3dc", "fetch": "#7f9cb5",
	"transform": "#b4708c", "use": "#e3e8ec", "deliver": "#8a8f99"}

// steps returns an SVG picture of several steps of each worker, similar to a zoomed view in
// Perfetto. It returns an error if the trace has fewer than two workers.
func steps(l *timeline.Log) ([]byte, error) {
	const left, right, row, head, edge = 170, 920, 24, 40, 16
	const span = 25 * time.Millisecond
	var tracks []*timeline.Track
	begin := time.Duration(0)
	for _, k := range l.Tracks {
		if l.Processes[k.PID] == "shoal" {
			continue
		}
		tracks = append(tracks, k)
		if n := len(k.Spans); k.Name == "train" && n > 0 {
			begin = max(begin, k.Spans[0].Begin+100*time.Millisecond) // when all workers train
		}
	}
	if len(tracks) < 6 {
		return nil, errors.New("the trace has fewer than two workers")
	}
	rows := func(k *timeline.Track) int { return map[bool]int{true: 2, false: 1}[k.Name == "loader"] }
	height := head + edge
	for _, k := range tracks {
		height += rows(k)*row + 8
	}
	d := newDrawing(right+2*edge, height+26, "#f6f8fa")
	x := func(at time.Duration) int { return left + int(int64(right-left)*int64(at-begin)/int64(span)) }
	for ms := 0; ms <= int(span/time.Millisecond); ms += 5 {
		at := x(begin + time.Duration(ms)*time.Millisecond)
		d.text(at, 24, `font-family="sans-serif" font-size="11" text-anchor="middle" fill="#567"`,
			fmt.Sprint(ms, " ms"))
		fmt.Fprintf(d, `<path d="M%d 30V%d" stroke="#d5dde4"/>`+"\n", at, height-8)
	}
	y := head
	for _, k := range tracks {
		d.text(edge, y+16, `font-family="sans-serif" font-size="13" fill="#234"`, l.Processes[k.PID]+": "+k.Name)
		for _, s := range k.Spans {
			depth := s.Depth
			if k.Name == "train" {
				depth-- // the epoch span is longer than the picture
			}
			from, to := max(left, x(s.Begin)), min(right, x(s.End))
			if depth < 0 || to <= from {
				continue
			}
			fmt.Fprintf(d, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s"/>`+"\n", from, y+depth*row,
				to-from, row-3,
				cmp.Or(colours[s.Name], "#999"))
			if to-from > 8*len(s.Name) {
				ink := "#fff"
				if s.Name == "load" || s.Name == "use" {
					ink = "#345"
				}
				d.text(from+4, y+depth*row+15,
					fmt.Sprintf(`font-family="sans-serif" font-size="11" fill="%s"`, ink), s.Name)
			}
		}
		y += rows(k)*row + 8
	}
	at := left
	for _, name := range []string{"batch wait", "forward", "backward", "step", "report", "load", "fetch",
		"transform", "use"} {
		fmt.Fprintf(d, `<rect x="%d" y="%d" width="11" height="11" fill="%s"/>`+"\n", at, height+4, colours[name])
		d.text(at+15, height+14, `font-family="sans-serif" font-size="11" fill="#345"`, name)
		at += 30 + 7*len(name)
	}
	return d.end(), nil
}

// drawTrace writes the picture for the how-to page, docs/howto/trace.svg below root. bin must be
// the directory with the command shoal.
func drawTrace(ctx context.Context, root, bin string) error {
	picture, err := traced(ctx, bin)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, "docs/howto/trace.svg"), picture, 0o644)
}
