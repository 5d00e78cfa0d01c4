package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Groups of a step. A group from 1 to groups takes its turn once in that many landings.
const (
	groupAlways  = 0
	groupInstall = -1 // runs if a selected step needs it
	groups       = 3
)

// Lanes run beside each other; the steps of one lane run one after another.
const (
	laneMain    = "main"
	laneSide    = "side"    // steps that mostly wait
	laneInstall = "install" // downloads
)

const defaultLimit = 40 * time.Minute

// A step is one entry of .ci/steps.
type step struct {
	name   string
	group  int
	lane   string
	needs  []string // steps that must have ended before
	covers []string // steps that need not run beside this one
	inputs []string // git pathspecs
	long   bool     // does not run for a commit without a mark
	script string
	limit  time.Duration
	text   string // the entry as it is written
}

// A table is the content of .ci/steps.
type table struct {
	steps []step
	// race maps a set of packages for the race detector to directories: core, skip, and some of the
	// thirds. Packages without a set belong to the last third.
	race map[string][]string
}

// parseTable reads the text of .ci/steps and checks that its entries fit together. The error
// names the first wrong line or entry.
func parseTable(text string) (*table, error) {
	t := &table{race: make(map[string][]string)}
	for i, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		var err error
		switch {
		case len(words) == 0 || strings.HasPrefix(words[0], "#"):
			continue
		case strings.HasPrefix(line, "\t") && len(t.steps) > 0:
			err = t.steps[len(t.steps)-1].set(line, words)
		case words[0] == "step" && len(words) == 2:
			t.steps = append(t.steps, step{name: words[1], lane: laneMain, group: -2, limit: defaultLimit})
		case words[0] == "race" && len(words) > 2:
			t.race[words[1]] = append(t.race[words[1]], words[2:]...)
		default:
			err = fmt.Errorf("want a comment, a race set, a step or a field of one")
		}
		if err != nil {
			return nil, fmt.Errorf("parse line %d, %q: %w", i+1, line, err)
		}
	}
	return t, t.check()
}

// set applies one field of an entry to s. words are the words of line.
func (s *step) set(line string, words []string) error {
	s.text += line + "\n"
	rest := words[1:]
	switch words[0] {
	case "run":
		_, command, _ := strings.Cut(line, "run ")
		s.script += command + "\n"
		return nil
	case "in":
		s.inputs = append(s.inputs, rest...)
		return nil
	case "needs":
		s.needs = append(s.needs, rest...)
		return nil
	case "covers":
		s.covers = append(s.covers, rest...)
		return nil
	}
	if len(rest) != 1 {
		return fmt.Errorf("field %q has %d values, want 1", words[0], len(rest))
	}
	switch words[0] {
	case "group":
		return s.setGroup(rest[0])
	case "long":
		if rest[0] != "yes" {
			return fmt.Errorf("long %q: want yes", rest[0])
		}
		s.long = true
		return nil
	case "lane":
		s.lane = rest[0]
		return nil
	case "limit":
		d, err := time.ParseDuration(rest[0])
		s.limit = d
		return err
	}
	return fmt.Errorf("unknown field %q", words[0])
}

func (s *step) setGroup(word string) error {
	switch word {
	case "always":
		s.group = groupAlways
	case "install":
		s.group, s.lane = groupInstall, laneInstall
	default:
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > groups {
			return fmt.Errorf("group %q: want always, install or a number from 1 to %d", word, groups)
		}
		s.group = n
	}
	return nil
}

func (t *table) check() error {
	for i, s := range t.steps {
		switch {
		case s.group < groupInstall:
			return fmt.Errorf("step %s has no group", s.name)
		case s.long && s.group < 1:
			return fmt.Errorf("step %s is long: want a group from 1 to %d", s.name, groups)
		case s.script == "":
			return fmt.Errorf("step %s has no command", s.name)
		case !slices.Contains([]string{laneMain, laneSide, laneInstall}, s.lane):
			return fmt.Errorf("step %s: unknown lane %q", s.name, s.lane)
		}
		if j := t.index(s.name); j != i {
			return fmt.Errorf("step %s is listed twice", s.name)
		}
		for _, other := range slices.Concat(s.needs, s.covers) {
			if t.index(other) < 0 {
				return fmt.Errorf("step %s names step %q, which is not listed", s.name, other)
			}
		}
		for _, other := range s.needs {
			if t.index(other) >= i { // so that no two steps wait for each other
				return fmt.Errorf("step %s needs step %s, which must be listed before it", s.name, other)
			}
		}
	}
	return nil
}

func (t *table) index(name string) int {
	return slices.IndexFunc(t.steps, func(s step) bool { return s.name == name })
}
