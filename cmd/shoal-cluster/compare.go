package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// A way is one of those that do the same work, and are measured in turn.
type way struct {
	name    string
	measure func(ctx context.Context) (float64, error) // how much of the unit
}

// A comparison is the medians of our way and of the others.
type comparison struct {
	Row     string             `json:"row"`
	Unit    string             `json:"unit"`
	Shoal   float64            `json:"shoal"`
	Against map[string]float64 `json:"against"`
	Ratio   map[string]float64 `json:"ratio"` // of ours to each
}

// compare measures ways in turn, the first of them ours, and prints their medians. A round before
// the first warms all of them up.
func (c *benchCommand) compare(ctx context.Context, row, unit string, ways ...way) error {
	rounds := c.Rounds
	if c.Quick {
		rounds = 1
	}
	all := make([][]float64, len(ways))
	for round := range rounds + 1 {
		for i, w := range ways {
			v, err := w.measure(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			if round > 0 {
				all[i] = append(all[i], v)
			}
		}
	}
	r := comparison{row, unit, median(all[0]), make(map[string]float64), make(map[string]float64)}
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %.0f %s", row, r.Shoal, unit)
	for i, w := range ways[1:] {
		other := median(all[i+1])
		r.Against[w.name], r.Ratio[w.name] = other, r.Shoal/other
		fmt.Fprintf(&text, "; %s %.0f, %.2f of it", w.name, other, r.Shoal/other)
	}
	if c.JSON {
		return json.NewEncoder(os.Stdout).Encode(r)
	}
	_, err := fmt.Println(text.String())
	return err
}
