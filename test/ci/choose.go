package main

import (
	"cmp"
	"fmt"
	"slices"
)

// A mark is the metadata in the message of a landing's last commit: the last commit of the previous
// landing, and the group of steps that is due.
type mark struct {
	since string
	group int
}

// A history answers questions about the commits of a repository. A commit may be any revision
// that git accepts.
type history interface {
	// mark returns the mark in the message of a commit, and false if it has none.
	mark(commit string) (mark, bool)
	// contains reports whether a commit is at hand and HEAD descends from it.
	contains(commit string) bool
	// changed returns a file that matches a pathspec and differs between a commit and HEAD, or
	// "" if there is none.
	changed(since string, pathspecs []string) (file string, err error)
	// table returns the text of .ci/steps in a commit, or "" if there is no such file.
	table(commit string) string
}

// A turn is the part of the choice of steps that concerns all steps. [turnOf] makes it.
type turn struct {
	since string // the previous landing; empty if everything runs
	group int
	why   string // the reason if everything runs
	all   bool   // CI_ALL=1: also the long steps
}

func (t turn) everything() bool { return t.since == "" }

// turnOf returns the turn of HEAD, the last commit of a landing: a set of commits that is pushed at
// once. Wherever the previous landing is not known for certain, everything runs.
func turnOf(h history) turn {
	m, ok := h.mark("HEAD")
	switch {
	case !ok:
		return turn{why: "everything: make landing has not marked this commit"}
	case !h.contains(m.since):
		return turn{why: fmt.Sprintf("everything: the history at hand lacks %s, the previous landing", m.since)}
	}
	if before, ok := h.mark(m.since); ok && next(before.group) != m.group {
		why := "everything: the mark has group %d, and the previous landing had group %d"
		return turn{why: fmt.Sprintf(why, m.group, before.group)}
	}
	return turn{since: m.since, group: m.group}
}

// next returns the group that follows another one. A landing without a mark, which ran everything,
// must be passed as group 0, which the first group follows.
func next(group int) int { return group%groups + 1 }

// choose returns the reason for each selected step, by its name; steps that are not selected are
// not in the map. It returns an error if h cannot compare the steps' inputs with the previous
// landing.
func (t *table) choose(h history, now turn) (map[string]string, error) {
	reasons := make(map[string]string)
	old := make(map[string]string)
	if !now.everything() {
		if before, err := parseTable(h.table(now.since)); err == nil {
			for _, s := range before.steps {
				old[s.name] = s.text
			}
		}
	}
	for _, s := range t.steps {
		why, err := s.reason(h, now, old)
		if err != nil {
			return nil, err
		}
		if why != "" {
			reasons[s.name] = why
		}
	}
	for _, s := range t.steps {
		if reasons[s.name] != "" {
			for _, covered := range s.covers {
				delete(reasons, covered)
			}
		}
	}
	for _, s := range slices.Backward(t.steps) { // an installation may need another one, listed before it
		if reasons[s.name] != "" {
			for _, needed := range s.needs {
				reasons[needed] = cmp.Or(reasons[needed], "needed by "+s.name)
			}
		}
	}
	return reasons, nil
}

// reason returns why a step is selected on its own account, or "" if it is not. It compares the
// step's entry with the one at the previous landing; old has those entries by name. The error is
// from [history].
func (s *step) reason(h history, now turn, old map[string]string) (string, error) {
	switch {
	case s.group == groupInstall:
		return "", nil
	case s.group == groupAlways:
		return "always", nil
	case now.everything() && (now.all || !s.long):
		return "everything", nil
	case s.group == now.group:
		return fmt.Sprintf("turn of group %d", s.group), nil
	case now.everything():
		return "", nil
	case old[s.name] != s.text:
		return "its entry changed", nil
	case len(s.inputs) == 0:
		return "", nil
	}
	file, err := h.changed(now.since, s.inputs)
	if err != nil || file == "" {
		return "", err
	}
	return "changed: " + file, nil
}
